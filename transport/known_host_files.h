// known_hosts files on disk: each is read once as long as it does not change, and new keys are appended.
#pragma once

#include <sys/stat.h>

#include <map>
#include <string>
#include <vector>

#include "base/asio.h"
#include "base/error.h"
#include "transport/known_hosts.h"

namespace drun::transport {

enum class Stored { kAdded, kAlreadyThere };

// One thread. Looks at a file's inode, size and times before each use, so changes by others are seen.
class KnownHostFiles {
 public:
  // Keys in all of the files. A file that can't be read is skipped.
  std::vector<KnownKey> find(const std::vector<std::string>& files, const std::string& name,
                             const std::string& plain_name);
  // Appends a line under a lock on the file, unless it already has the key. Creates ~/.ssh (0700) and the file (0600).
  // Waits up to 2 s for the lock. An error leaves the file as it was.
  Task<Result<Stored>> store(std::string path, std::string name, HostKey key, bool hashed);
  // Lines parsed so far, for tests.
  int n_parsed() const { return n_parsed_; }

 private:
  struct File {
    explicit File(const std::string& path) : lines(path) {}
    struct stat state {};
    std::string text;
    KnownHostLines lines;
  };
  Result<File*> current(const std::string& path);
  void append(File& file, std::string_view text);

  std::map<std::string, File> files_;  // by path
  int n_parsed_ = 0;
};

}  // namespace drun::transport
