#include "transport/known_hosts.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"
#include "base/text.h"
#include "transport/sha1.h"

namespace drun::transport {
namespace {

constexpr auto kLockTimeout = std::chrono::seconds(2);
constexpr auto kLockRetry = std::chrono::milliseconds(10);

// The next word of a line; spaces and tabs separate.
std::string_view next_word(std::string_view& line) {
  while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
  std::size_t n = 0;
  while (n < line.size() && line[n] != ' ' && line[n] != '\t' && line[n] != '\r') ++n;
  const auto word = line.substr(0, n);
  line.remove_prefix(n);
  return word;
}

bool hashed_match(std::string_view pattern, const std::string& name) {
  const auto parts = split(pattern, '|');  // "", "1", salt, hash
  if (parts.size() != 4 || parts[1] != "1") return false;
  const std::string salt = unbase64(parts[2]);
  return !salt.empty() && hmac_sha1(salt, name) == unbase64(parts[3]);
}

// A comma-separated list of patterns; one with "!" that matches refuses all.
bool names_match(std::string_view patterns, const std::string& name) {
  if (starts_with(patterns, "|")) return hashed_match(patterns, name);
  bool found = false;
  for (auto pattern : split(patterns, ',')) {
    const bool negated = starts_with(pattern, "!");
    if (negated) pattern.remove_prefix(1);
    if (!glob_match(lower(pattern), name)) continue;
    if (negated) return false;
    found = true;
  }
  return found;
}

Result<void> make_parent_folder(const std::string& file) {
  const auto slash = file.rfind('/');
  if (slash == std::string::npos || slash == 0) return {};
  const std::string folder = file.substr(0, slash);
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return fail(errno_error(errno, folder));
}

}  // namespace

std::string known_hosts_name(std::string_view host, int port, std::string_view alias) {
  if (!alias.empty()) return lower(alias);
  if (port == 22) return lower(host);
  return "[" + lower(host) + "]:" + std::to_string(port);
}

std::vector<KnownKey> find_known_keys(std::string_view text, const std::string& file, const std::string& name,
                                      const std::string& plain_name) {
  std::vector<KnownKey> found;
  int number = 0;
  for (auto line : split(text, '\n')) {
    ++number;
    KnownKey entry;
    auto word = next_word(line);
    if (word.empty() || word.front() == '#') continue;
    if (word.front() == '@') {
      entry.revoked = word == "@revoked";
      entry.authority = word == "@cert-authority";
      if (!entry.revoked && !entry.authority) continue;
      word = next_word(line);
    }
    if (!names_match(word, name)) {
      if (plain_name.empty() || !names_match(word, plain_name)) continue;
      entry.plain_name = true;
    }
    entry.key.type = next_word(line);
    entry.key.base64 = next_word(line);
    if (entry.key.type.empty() || entry.key.base64.empty()) continue;
    entry.file = file;
    entry.line = number;
    found.push_back(std::move(entry));
  }
  return found;
}

std::vector<KnownKey> find_known_keys(const std::vector<std::string>& files, const std::string& name,
                                      const std::string& plain_name) {
  std::vector<KnownKey> all;
  for (const auto& file : files) {
    const auto text = read_file(file);
    if (!text) continue;
    for (auto& entry : find_known_keys(*text, file, name, plain_name)) all.push_back(std::move(entry));
  }
  return all;
}

std::string hashed_name(std::string_view salt, std::string_view name) {
  return "|1|" + base64(salt) + "|" + base64(hmac_sha1(salt, name));
}

Task<Result<Stored>> store_host_key(std::string file, std::string name, HostKey key, bool hashed) {
  if (auto made = make_parent_folder(file); !made) co_return fail(made.error());
  Fd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!fd) co_return fail(errno_error(errno, file));
  const Deadline deadline = Clock::now() + kLockTimeout;
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) co_return fail(errno_error(errno, file + ": lock"));
    if (Clock::now() >= deadline) co_return fail(Errc::kIo, file + ": somebody else holds its lock");
    co_await sleep_until(Clock::now() + kLockRetry);
  }
  const auto text = read_file(file);
  if (!text) co_return fail(text.error());
  for (const auto& known : find_known_keys(*text, file, name, "")) {
    if (known.key == key && !known.revoked && !known.authority) co_return Stored::kAlreadyThere;
  }
  std::string who = name;
  if (hashed) {
    std::string salt(20, '\0');
    if (::getrandom(salt.data(), salt.size(), 0) != static_cast<ssize_t>(salt.size())) {
      co_return fail(errno_error(errno, "getrandom"));
    }
    who = hashed_name(salt, name);
  }
  std::string line = who + " " + key.type + " " + key.base64 + "\n";
  if (!text->empty() && text->back() != '\n') line.insert(0, "\n");
  if (auto written = write_all(fd.get(), line); !written) co_return fail(written.error());
  co_return Stored::kAdded;
}

}  // namespace drun::transport
