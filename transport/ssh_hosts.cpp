#include "transport/ssh_hosts.h"

#include <algorithm>
#include <unordered_set>

#include "base/fd.h"
#include "base/text.h"
#include "transport/ssh_config.h"
#include "transport/ssh_config_parser.h"
#include "transport/ssh_tokens.h"

namespace drun::transport {
namespace {

constexpr int kMaxDepth = 16;
constexpr std::size_t kMaxFile = 16u << 20;

bool is_pattern(std::string_view name) { return name.find_first_of("*?!") != std::string_view::npos; }

struct ConfigReader {
  std::string home, include_folder;
  std::vector<std::string> names;
  std::unordered_set<std::string> files;  // already read

  void read(const std::string& path, int depth) {
    if (depth > kMaxDepth || !files.insert(path).second) return;
    const auto text = read_file(path, kMaxFile);
    if (!text) return;
    for (const auto line : split(*text, '\n')) {
      const auto parsed = split_ssh_config_line(line);
      if (!parsed) continue;
      if (parsed->keyword == "include") include(parsed->value.words, depth);
      if (parsed->keyword != "host") continue;
      for (const auto& word : parsed->value.words) {
        if (!is_pattern(word)) names.push_back(word);
      }
    }
  }

  void include(const std::vector<std::string>& patterns, int depth) {
    for (const auto& word : patterns) {
      for (const auto& path : included_files(word, home, include_folder)) read(path, depth + 1);
    }
  }
};

}  // namespace

std::vector<std::string> config_hosts(const std::string& file, const std::string& home,
                                      const std::string& include_folder) {
  ConfigReader reader{home, include_folder, {}, {}};
  reader.read(file, 0);
  return std::move(reader.names);
}

std::vector<std::string> known_hosts_hosts(std::string_view text) {
  std::vector<std::string> out;
  for (const auto whole : split(text, '\n')) {
    const auto line = trim(whole);
    if (line.empty() || line.front() == '#' || line.front() == '@' || line.front() == '|') continue;
    for (auto name : split(line.substr(0, line.find_first_of(" \t")), ',')) {
      if (starts_with(name, "[")) name = name.substr(1, name.find(']') - 1);  // "[host]:port"
      if (!name.empty() && !is_pattern(name)) out.emplace_back(name);
    }
  }
  return out;
}

std::vector<std::string> ssh_hosts(const std::string& config_file) {
  const std::string home = local_account().home, folder = home + "/.ssh";
  std::vector<std::string> all;
  const auto add = [&all](std::vector<std::string> names) { all.insert(all.end(), names.begin(), names.end()); };
  if (config_file.empty()) {
    add(config_hosts(folder + "/config", home, folder));
    add(config_hosts("/etc/ssh/ssh_config", home, "/etc/ssh"));
  } else if (config_file != "none") {
    add(config_hosts(expand_tilde(config_file, home), home, folder));
  }
  for (const auto& file :
       {folder + "/known_hosts", folder + "/known_hosts2", std::string("/etc/ssh/ssh_known_hosts")}) {
    if (const auto text = read_file(file, kMaxFile)) add(known_hosts_hosts(*text));
  }
  std::unordered_set<std::string> seen;
  all.erase(std::remove_if(all.begin(), all.end(), [&seen](const auto& name) { return !seen.insert(name).second; }),
            all.end());
  return all;
}

}  // namespace drun::transport
