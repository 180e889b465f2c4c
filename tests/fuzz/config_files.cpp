// drun.toml files, which may come with a cloned repository.
#include "base/text.h"
#include "cli/config/config_rules.h"
#include "cli/config/config_text.h"
#include "cli/config/host_groups.h"
#include "tests/fuzz/fuzz.h"

namespace drun::fuzz {
namespace {

using namespace cli;

void check(const Error& error) {
  expect(error.code == Errc::kUsage && !error.cause.empty(), "an error says what is wrong");
  expect(starts_with(error.subject, "f:") || error.subject == "-H", "an error names the file");
}

void check(const std::vector<ConfigEntry>& entries) {
  int line = 1;
  for (const auto& entry : entries) {
    expect(entry.line >= line, "entries are in the order of their lines");
    line = entry.line;
    expect(entry.shape != ConfigEntry::Shape::kOne || entry.values.size() == 1, "a value is one");
    for (const auto& value : entry.values) expect(value.text.find('\0') == std::string::npos, "a value can be typed");
    check(entry.children);
  }
}

void run(std::string_view bytes) {
  const auto entries = parse_config(bytes, "f");
  if (!entries) return check(entries.error());
  check(*entries);
  for (const auto& entry : *entries) {
    (void)find_rule(entry.key);
    const auto table = read_host_table(entry, "f");
    if (!table) {
      check(table.error());
      continue;
    }
    for (const auto& group : table->groups) {
      const auto hosts = expand_groups({"@" + group.name, "a:2"}, table->groups);
      if (!hosts) {
        check(hosts.error());
      } else {
        expect(groups_in(*hosts).empty(), "no group is left");
      }
    }
  }
}

std::vector<std::string> seeds() {
  return {
      "hosts = [\"gpu1:8\", \"gpu2:8\"]\nnp = 4\ntimeout = 0.5\npty = true\ntag-output = \"host\"\n",
      "[hosts]\ndefault = [\"@gpu\"]\ncpu = \"node[01-16]:4\"\n[hosts.gpu]\nhosts = ['g1', \"\"\"g2\"\"\"]\n",
      "a.b.c = 1979-05-27T07:32:00Z\ne = [[1], {e = 0x1f}]\n",
      "hosts = [\"a\"]\n[hosts.gpu]\n",
      "x = \"\\u0000\"\n",
  };
}

const Target kTarget("config_files", run, seeds);

}  // namespace
}  // namespace drun::fuzz
