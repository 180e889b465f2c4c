#include "cli/config/config_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/text.h"
#include "cli/config/toml_characters.h"

// A fault of the text is a value. The library is used as headers only: drun links no other shared object for it.
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
// toml++ asserts, or lets the compiler assume, what a wrong file refutes: `[=]` has no name. Without both it reports
// the fault, as the fuzz target config_files shows.
#define TOML_ASSERT(expr) static_cast<void>(0)
#define TOML_ASSUME(expr) static_cast<void>(0)
#include <toml++/toml.h>

namespace drun::cli {

namespace {

std::string number_text(double value) {
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return std::string(buffer.data(), end);
}

// The cause of an error names no key: the caller knows it.
Result<ConfigValue> value_of(const toml::node& node) {
  ConfigValue out;
  if (const auto* text = node.as_string()) {
    out.text = from_toml_ascii(text->get());
    if (out.text.find('\0') != std::string::npos) return fail(Errc::kUsage, "the value contains a NUL character");
  } else if (const auto* flag = node.as_boolean()) {
    out.kind = ConfigValue::Kind::kBool;
    out.text = flag->get() ? "true" : "false";
  } else if (const auto* whole = node.as_integer()) {
    out.kind = ConfigValue::Kind::kNumber;
    out.text = std::to_string(whole->get());
  } else if (const auto* real = node.as_floating_point()) {
    out.kind = ConfigValue::Kind::kNumber;
    out.text = number_text(real->get());
  } else if (node.is_array()) {
    return fail(Errc::kUsage, "a list inside a list");
  } else if (node.is_table()) {
    return fail(Errc::kUsage, "a table inside a list");
  } else {
    return fail(Errc::kUsage, "a date or time is not the value of any option; put it in quotes if it is text");
  }
  return out;
}

constexpr int kMaxDepth = 4;  // [hosts.gpu] hosts = [...] needs 3; a key may have thousands of dots

Result<std::vector<ConfigEntry>> entries_of(const toml::table& table, const std::string& name,
                                            const std::string& prefix, int depth);

// `key` is the whole one, "hosts.gpu", for errors. Leaves out what lies deeper than kMaxDepth.
Result<ConfigEntry> entry_of(const std::string& key, int line, const toml::node& node, const std::string& name,
                             int depth) {
  const auto fault = [&](const Error& error) {
    return fail(Errc::kUsage, name + ":" + std::to_string(line), "'" + key + "': " + error.cause);
  };
  ConfigEntry out;
  out.line = line;
  if (const toml::table* table = node.as_table()) {
    out.shape = ConfigEntry::Shape::kTable;
    if (depth == kMaxDepth) return out;
    auto children = entries_of(*table, name, key + ".", depth + 1);
    if (!children) return fail(std::move(children.error()));
    out.children = std::move(*children);
    return out;
  }
  const toml::array* list = node.as_array();
  if (list == nullptr) {
    auto value = value_of(node);
    if (!value) return fault(value.error());
    out.values.push_back(std::move(*value));
    return out;
  }
  out.shape = ConfigEntry::Shape::kList;
  for (const toml::node& element : *list) {
    auto value = value_of(element);
    if (!value) return fault(value.error());
    out.values.push_back(std::move(*value));
  }
  return out;
}

Result<std::vector<ConfigEntry>> entries_of(const toml::table& table, const std::string& name,
                                            const std::string& prefix, int depth) {
  std::vector<ConfigEntry> out;
  for (const auto& [key, node] : table) {
    const std::string own = from_toml_ascii(key.str());
    auto entry = entry_of(prefix + own, static_cast<int>(key.source().begin.line), node, name, depth);
    if (!entry) return fail(std::move(entry.error()));
    entry->key = own;
    out.push_back(std::move(*entry));
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.line < b.line; });
  return out;
}

Error syntax_error(const toml::parse_error& error, const std::string& name) {
  const auto begin = error.source().begin;
  std::string cause = from_toml_ascii(error.description());
  if (!cause.empty()) cause[0] = lower(cause.substr(0, 1))[0];
  Error out(Errc::kUsage, name + ":" + std::to_string(begin.line) + ":" + std::to_string(begin.column),
            "not valid TOML: " + cause);
  // TOML has no key that is a list and a table.
  const auto has = [&cause](const char* word) { return cause.find(word) != std::string::npos; };
  const bool is_about_groups = has("redefine") && has("'hosts") && !has("existing table");
  if (is_about_groups) out.hint = "beside [hosts.NAME], the hosts without -H are: [hosts] default = [\"host1:8\"]";
  return out;
}

}  // namespace

Result<std::vector<ConfigEntry>> parse_config(std::string_view text, const std::string& name) {
  const auto ascii = toml_to_ascii(text, name);
  if (!ascii) return fail(ascii.error());
  const toml::parse_result parsed = toml::parse(std::string_view(*ascii), std::string_view(name));
  if (!parsed) return fail(syntax_error(parsed.error(), name));
  return entries_of(parsed.table(), name, "", 1);
}

}  // namespace drun::cli
