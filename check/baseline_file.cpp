#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/fd.h"
#include "base/new_file.h"
#include "base/text.h"
#include "check/baseline.h"

namespace drun::check {
namespace {

constexpr std::size_t kMaxBytes = 64u << 20;  // all pairs of a thousand hosts take less

// Makes any error kUsage: the file is the user's, so the user has to fix it.
Error about(const std::string& path, Error error) {
  error.code = Errc::kUsage;
  error.subject = path;
  return error;
}

Error about_errno(const std::string& path) { return {Errc::kUsage, path, std::strerror(errno)}; }

}  // namespace

Result<void> write_baseline(const std::string& path, const Baseline& baseline) {
  auto file = NewFile::create(path, 0666);
  auto written = file ? file->write(to_json(baseline)) : Result<void>(fail(file.error()));
  if (written) written = file->commit();
  if (written) return {};
  Error error = std::move(written.error());
  if (const std::string named = path + ": "; starts_with(error.cause, named)) error.cause.erase(0, named.size());
  return fail(about(path, std::move(error)));
}

Result<Baseline> read_baseline(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return fail(about_errno(path));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return fail(about_errno(path));
  if (!S_ISREG(status.st_mode)) return fail(Errc::kUsage, path, "it is no regular file");
  const auto text = read_to_end(fd.get(), kMaxBytes);
  if (!text) return fail(about(path, text.error()));
  auto baseline = parse_baseline(*text);
  if (!baseline) return fail(about(path, std::move(baseline.error())));
  return baseline;
}

}  // namespace drun::check
