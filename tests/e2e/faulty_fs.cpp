// A file system that shows a folder of another one, but answers some requests late or never, as a network file system
// does whose server is busy or dead, or can't write, as a full one:
//
//   drun-test-faulty-fs FOLDER MOUNT_POINT OPERATION HOW [NAME]
//
// OPERATION: "stat", "chdir" (also access()), "open", "exec"; HOW: the delay in seconds, or "forever". Or "write" or
// "close"; HOW: the error of each write() or close(), "ENOSPC", "EDQUOT" or "EIO". NAME: only for the file or folder of
// that name; default: any. Runs until it is unmounted or killed; when it is killed, the kernel ends all requests that
// wait.
#define FUSE_USE_VERSION 31
#include <fcntl.h>
#include <fuse.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr int kExecFlag = 0x20;  // of the kernel's open(), when it executes the file
constexpr unsigned kForever = 1u << 30;

struct Settings {
  std::string folder;
  std::string operation;
  unsigned seconds = 0;
  int write_error = 0, close_error = 0;
  std::string name;
};
Settings settings;

std::string real(const char* path) { return settings.folder + path; }

void delay(const char* operation, const char* path) {
  if (settings.operation != operation) return;
  const char* name = std::strrchr(path, '/') + 1;
  if (!settings.name.empty() && settings.name != name) return;
  for (unsigned left = settings.seconds; left > 0;) left = ::sleep(left);
}

int result(int value) { return value < 0 ? -errno : value; }

int get_attributes(const char* path, struct stat* out, fuse_file_info*) {
  delay("stat", path);
  return result(::lstat(real(path).c_str(), out));
}

int check_access(const char* path, int mode) {
  delay("chdir", path);
  return result(::access(real(path).c_str(), mode));
}

int open_file(const char* path, fuse_file_info* file) {
  delay((file->flags & kExecFlag) != 0 ? "exec" : "open", path);
  const int fd = ::open(real(path).c_str(), (file->flags & (O_ACCMODE | O_TRUNC | O_APPEND)) | O_CLOEXEC);
  if (fd < 0) return -errno;
  file->fh = static_cast<std::uint64_t>(fd);
  return 0;
}

int read_file(const char*, char* buffer, std::size_t n_bytes, off_t offset, fuse_file_info* file) {
  return result(static_cast<int>(::pread(static_cast<int>(file->fh), buffer, n_bytes, offset)));
}

int create_file(const char* path, mode_t mode, fuse_file_info* file) {
  const int fd = ::open(real(path).c_str(), O_CREAT | O_RDWR | (file->flags & (O_EXCL | O_TRUNC)) | O_CLOEXEC, mode);
  if (fd < 0) return -errno;
  file->fh = static_cast<std::uint64_t>(fd);
  return 0;
}

int write_file(const char*, const char* bytes, std::size_t n_bytes, off_t offset, fuse_file_info* file) {
  if (settings.write_error != 0) return -settings.write_error;
  return result(static_cast<int>(::pwrite(static_cast<int>(file->fh), bytes, n_bytes, offset)));
}

int truncate_file(const char* path, off_t n_bytes, fuse_file_info*) {
  return result(::truncate(real(path).c_str(), n_bytes));
}

int change_mode(const char* path, mode_t mode, fuse_file_info*) { return result(::chmod(real(path).c_str(), mode)); }

int rename_file(const char* from, const char* to, unsigned) {
  return result(::rename(real(from).c_str(), real(to).c_str()));
}

int remove_file(const char* path) { return result(::unlink(real(path).c_str())); }

int make_folder(const char* path, mode_t mode) { return result(::mkdir(real(path).c_str(), mode)); }

int remove_folder(const char* path) { return result(::rmdir(real(path).c_str())); }

int error_of(const char* name) {
  if (std::strcmp(name, "ENOSPC") == 0) return ENOSPC;
  return std::strcmp(name, "EDQUOT") == 0 ? EDQUOT : EIO;
}

// The kernel calls it for each close() of a descriptor, and returns its result. It drops that of close_file().
int flush_file(const char*, fuse_file_info*) { return -settings.close_error; }

int close_file(const char*, fuse_file_info* file) {
  ::close(static_cast<int>(file->fh));
  return 0;
}

void* start(fuse_conn_info*, fuse_config* config) {
  config->entry_timeout = config->attr_timeout = config->negative_timeout = 0;  // nothing is answered from a cache
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  settings.folder = argv[1];
  settings.operation = argv[3];
  if (settings.operation == "write") settings.write_error = error_of(argv[4]);
  if (settings.operation == "close") settings.close_error = error_of(argv[4]);
  settings.seconds = std::strcmp(argv[4], "forever") == 0 ? kForever : static_cast<unsigned>(std::atoi(argv[4]));
  if (argc > 5) settings.name = argv[5];
  fuse_operations operations{};
  operations.getattr = get_attributes;
  operations.access = check_access;
  operations.open = open_file;
  operations.read = read_file;
  operations.flush = flush_file;
  operations.release = close_file;
  operations.create = create_file;
  operations.write = write_file;
  operations.truncate = truncate_file;
  operations.chmod = change_mode;
  operations.rename = rename_file;
  operations.unlink = remove_file;
  operations.mkdir = make_folder;
  operations.rmdir = remove_folder;
  operations.init = start;
  char foreground[] = "-f", option[] = "-o", options[] = "allow_other";
  char* words[] = {argv[0], foreground, option, options, argv[2], nullptr};
  return fuse_main(5, words, &operations, nullptr);
}
