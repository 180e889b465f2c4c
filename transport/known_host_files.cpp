#include "transport/known_host_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/fd.h"
#include "base/text.h"

namespace drun::transport {
namespace {

constexpr auto kLockTimeout = std::chrono::seconds(2);
constexpr auto kLockRetry = std::chrono::milliseconds(10);

bool same_time(const timespec& a, const timespec& b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

bool unchanged(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size && same_time(a.st_mtim, b.st_mtim) &&
         same_time(a.st_ctim, b.st_ctim);
}

Result<void> make_parent_folder(const std::string& file) {
  const auto slash = file.rfind('/');
  if (slash == std::string::npos || slash == 0) return {};
  const std::string folder = file.substr(0, slash);
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return fail(errno_error(errno, folder));
}

Result<std::string> line_of(const std::string& name, const HostKey& key, bool hashed) {
  std::string who = name;
  if (hashed) {
    std::string salt(20, '\0');
    if (::getrandom(salt.data(), salt.size(), 0) != static_cast<ssize_t>(salt.size())) {
      return fail(errno_error(errno, "getrandom"));
    }
    who = hashed_name(salt, name);
  }
  return who + " " + key.type + " " + key.base64 + "\n";
}

}  // namespace

void KnownHostFiles::append(File& file, std::string_view text) {
  const int before = file.lines.n_lines();
  file.lines.append(text);
  file.text += text;
  n_parsed_ += file.lines.n_lines() - before;
}

// If lines were only added, which is what ssh and drun do, only these are parsed.
Result<KnownHostFiles::File*> KnownHostFiles::current(const std::string& path) {
  struct stat state {};
  if (::stat(path.c_str(), &state) != 0) {
    const int error = errno;
    files_.erase(path);
    return fail(errno_error(error, path));
  }
  auto place = files_.find(path);
  if (place != files_.end() && unchanged(place->second.state, state)) return &place->second;
  const auto text = read_file(path);
  if (!text) return fail(text.error());
  if (place != files_.end()) {
    const std::string& before = place->second.text;
    const bool whole_lines = before.empty() || before.back() == '\n';
    if (!whole_lines || !starts_with(*text, before)) {
      files_.erase(place);
      place = files_.end();
    }
  }
  if (place == files_.end()) place = files_.emplace(path, File(path)).first;
  place->second.state = state;
  append(place->second, std::string_view(*text).substr(place->second.text.size()));
  return &place->second;
}

std::vector<KnownKey> KnownHostFiles::find(const std::vector<std::string>& files, const std::string& name,
                                           const std::string& plain_name) {
  std::vector<KnownKey> all;
  for (const auto& path : files) {
    const auto file = current(path);
    if (!file) continue;
    for (auto& entry : (*file)->lines.find(name, plain_name)) all.push_back(std::move(entry));
  }
  return all;
}

Task<Result<Stored>> KnownHostFiles::store(std::string path, std::string name, HostKey key, bool hashed) {
  if (auto made = make_parent_folder(path); !made) co_return fail(made.error());
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!fd) co_return fail(errno_error(errno, path));
  const Deadline deadline = Clock::now() + kLockTimeout;
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) co_return fail(errno_error(errno, path + ": lock"));
    if (Clock::now() >= deadline) co_return fail(Errc::kIo, path + ": somebody else holds its lock");
    co_await sleep_until(Clock::now() + kLockRetry);
  }
  const auto file = current(path);
  if (!file) co_return fail(file.error());
  for (const auto& known : (*file)->lines.find(name, "")) {
    if (known.key == key && !known.revoked && !known.authority) co_return Stored::kAlreadyThere;
  }
  auto line = line_of(name, key, hashed);
  if (!line) co_return fail(line.error());
  const std::string& before = (*file)->text;
  const bool whole_lines = before.empty() || before.back() == '\n';
  const std::string& text = *line;
  if (auto written = write_all(fd.get(), whole_lines ? text : "\n" + text, path); !written) {
    co_return fail(written.error());
  }
  // Spares the next host to read the file again, unless somebody without the lock has written to it, too.
  struct stat state {};
  const auto expected = static_cast<off_t>(before.size() + line->size());
  if (whole_lines && ::fstat(fd.get(), &state) == 0 && state.st_size == expected) {
    append(**file, *line);
    (*file)->state = state;
  }
  co_return Stored::kAdded;
}

}  // namespace drun::transport
