#include "transport/ssh_config_parser.h"

#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/fd.h"
#include "base/text.h"
#include "transport/ssh_match.h"
#include "transport/ssh_tokens.h"

namespace drun::transport {
namespace {

constexpr int kMaxDepth = 16;
constexpr std::size_t kMaxIdentities = 100;

bool keeps_all(std::string_view keyword) { return keyword == "identityfile" || keyword == "certificatefile"; }
bool takes_rest(std::string_view keyword) { return keyword == "proxycommand"; }

// The name of today, for an older one.
std::string current_name(const std::string& keyword) {
  if (keyword == "pubkeyacceptedkeytypes") return "pubkeyacceptedalgorithms";
  return keyword == "rsaminsize" ? "requiredrsasize" : keyword;
}

// One pass over one file and its includes.
class Reader {
 public:
  Reader(const SshConfigFile& file, const SshConfigSubject& subject, SshConfigValues& values)
      : root_(file), subject_(subject), values_(values) {}

  Result<void> read(const std::string& path, bool active, int depth, bool must_exist) {
    if (depth > kMaxDepth) return fail(Errc::kUsage, path, "too many levels of Include");
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) {
      if (!must_exist && (errno == ENOENT || errno == ENOTDIR || errno == EACCES)) return {};
      return fail(Errc::kUsage, path, "can't read the ssh config: " + lower(std::strerror(errno)));
    }
    if (root_.check_owner && ((info.st_uid != 0 && info.st_uid != ::getuid()) || (info.st_mode & 022) != 0)) {
      return fail(Error(Errc::kUsage, path, "bad owner or permissions: others can write it")
                      .with_hint("chmod 600 " + shell_quote(path)));
    }
    const auto text = read_file(path);
    if (!text) {
      if (!must_exist) return {};
      return fail(Errc::kUsage, path, "can't read the ssh config: " + text.error().cause);
    }
    Block block{active, active};
    int number = 0;
    for (const auto line : split(*text, '\n')) {
      const std::string where = path + ":" + std::to_string(++number);
      if (auto ok = take(line, where, block, depth); !ok) return ok;
    }
    return {};
  }

 private:
  // The block that a line belongs to.
  struct Block {
    bool may_match;  // false in a file that a block includes which does not match: no Host or Match line in it does
    bool active;     // the line counts
  };

  Result<void> take(std::string_view text, const std::string& where, Block& block, int depth) {
    auto line = split_ssh_config_line(text);
    if (!line) return fail(Error(line.error()).with_subject(where));
    if (line->keyword.empty()) return {};
    auto& value = line->value;
    value.where = where;
    if (value.words.empty()) return fail(Errc::kUsage, where, "missing argument of " + line->keyword);
    if (line->keyword == "host") {
      block.active =
          block.may_match && host_patterns_match(value.words, is_final() ? subject_.final_host : subject_.host);
    } else if (line->keyword == "match") {
      return take_match(value, block);
    } else if (line->keyword == "include") {
      return take_include(value, block.active, depth);
    } else if (block.active && !(is_final() && line->keyword == "hostname")) {
      values_.add(current_name(line->keyword), std::move(value));
    }
    return {};
  }

  bool is_final() const { return !subject_.final_host.empty(); }

  Result<void> take_match(const SshConfigValue& value, Block& block) {
    MatchSubject now;
    now.original_host = subject_.host;
    now.host = is_final() ? subject_.final_host : host_name_of(values_, subject_);
    now.is_final_pass = is_final();
    now.user = !subject_.user.empty() ? subject_.user : values_.word("user");
    if (now.user.empty()) now.user = subject_.local_user;
    now.local_user = subject_.local_user;
    const auto verdict = evaluate_match(value.words, now);
    if (!verdict) return fail(Error(verdict.error()).with_subject(value.where));
    block.active = block.may_match && verdict->matches;
    if (verdict->wants_final_pass) values_.wants_final_pass = true;
    if (block.may_match && !verdict->needs_openssh.empty() && values_.needs_openssh.empty()) {
      values_.needs_openssh = "Match " + verdict->needs_openssh + " in " + value.where;
    }
    return {};
  }

  Result<void> take_include(const SshConfigValue& value, bool active, int depth) {
    for (const auto& word : value.words) {
      for (const auto& path : included_files(word, subject_.home, root_.include_folder)) {
        if (auto ok = read(path, active, depth + 1, false); !ok) return ok;
      }
    }
    return {};
  }

  const SshConfigFile& root_;
  const SshConfigSubject& subject_;
  SshConfigValues& values_;
};

}  // namespace

const std::vector<SshConfigValue>& SshConfigValues::all(std::string_view keyword) const {
  static const std::vector<SshConfigValue> kNone;
  const auto found = values_.find(keyword);
  return found == values_.end() ? kNone : found->second;
}

const SshConfigValue* SshConfigValues::find(std::string_view keyword) const {
  const auto& values = all(keyword);
  return values.empty() ? nullptr : &values.front();
}

std::string SshConfigValues::word(std::string_view keyword) const {
  const auto* value = find(keyword);
  return value == nullptr ? "" : value->words.front();
}

void SshConfigValues::add(const std::string& keyword, SshConfigValue value) {
  // ProxyCommand and ProxyJump set the same thing: the first of either counts, except for "ProxyJump none".
  const auto* jump = find("proxyjump");
  if (keyword == "proxycommand" && jump != nullptr && lower(jump->words.front()) != "none") return;
  if (keyword == "proxyjump" && find("proxycommand") != nullptr) return;
  // In OpenSSH a later value counts behind this one.
  if (keyword == "connecttimeout" && value.words.front() == "none") return;
  auto& list = values_[keyword];
  const bool is_known = std::any_of(list.begin(), list.end(), [&](const SshConfigValue& other) {
    return other.words.front() == value.words.front();
  });
  if (list.empty() || (keeps_all(keyword) && !is_known && list.size() < kMaxIdentities))
    list.push_back(std::move(value));
}

Result<void> read_ssh_config(const SshConfigFile& file, const SshConfigSubject& subject, SshConfigValues& values) {
  Reader reader(file, subject, values);
  return reader.read(file.path, true, 0, file.must_exist);
}

std::string host_name_of(const SshConfigValues& values, const SshConfigSubject& subject) {
  const std::string word = values.word("hostname");
  if (word.empty()) return subject.host;
  const SshTokens tokens = {{'h', subject.host}};
  return expand_tokens(word, tokens).value_or(word);
}

std::vector<std::string> included_files(const std::string& word, const std::string& home,
                                        const std::string& include_folder) {
  const bool is_relative = !starts_with(word, "/") && !starts_with(word, "~");
  const std::string pattern = is_relative ? include_folder + "/" + word : expand_tilde(word, home);
  std::vector<std::string> out;
  glob_t found{};
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    out.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  ::globfree(&found);
  return out;
}

Result<SshConfigLine> split_ssh_config_line(std::string_view line) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f'; };
  while (!line.empty() && is_space(line.front())) line.remove_prefix(1);
  while (!line.empty() && is_space(line.back())) line.remove_suffix(1);
  SshConfigLine out;
  if (line.empty() || line.front() == '#') return out;
  if (line.front() == '=') {  // OpenSSH skips it, too
    line.remove_prefix(1);
    while (!line.empty() && is_space(line.front())) line.remove_prefix(1);
    if (line.empty()) return out;
  }

  std::size_t at = 0;
  if (line[0] == '"') {
    at = line.find('"', 1);
    if (at == std::string_view::npos) return fail(Errc::kUsage, "a quote is not closed");
    out.keyword = lower(line.substr(1, at - 1));
    ++at;
  } else {
    while (at < line.size() && !is_space(line[at]) && line[at] != '=') ++at;
    out.keyword = lower(line.substr(0, at));
  }
  while (at < line.size() && is_space(line[at])) ++at;
  if (at < line.size() && line[at] == '=') ++at;
  while (at < line.size() && is_space(line[at])) ++at;
  line.remove_prefix(at);
  out.value.rest = line;

  if (takes_rest(out.keyword)) {
    if (!line.empty()) out.value.words.push_back(out.value.rest);
    return out;
  }
  for (std::size_t i = 0; i < line.size();) {
    if (is_space(line[i])) {
      ++i;
      continue;
    }
    if (line[i] == '#') break;
    std::string word;
    char quote = 0;
    for (; i < line.size() && (quote != 0 || !is_space(line[i])); ++i) {
      const char c = line[i];
      const char next = i + 1 < line.size() ? line[i + 1] : '\0';
      if (c == '\\' && (next == '\'' || next == '"' || next == '\\' || (quote == 0 && next == ' '))) {
        word.push_back(line[++i]);
      } else if (quote == 0 && (c == '"' || c == '\'')) {
        quote = c;
      } else if (quote != 0 && c == quote) {
        quote = 0;
      } else {
        word.push_back(c);
      }
    }
    if (quote != 0) return fail(Errc::kUsage, "a quote is not closed");
    out.value.words.push_back(std::move(word));
  }
  return out;
}

}  // namespace drun::transport
