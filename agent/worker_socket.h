// The Unix socket by which workers find their agent: $DRUN_AGENT. Sends the job key to processes of our own user
// only.
#pragma once

#include <boost/asio/local/stream_protocol.hpp>
#include <functional>
#include <memory>
#include <string>

#include "agent/recorders.h"
#include "base/asio.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/memory_file.h"

namespace drun::agent {

class WorkerSocket {
 public:
  // Creates a directory of mode 0700 in /tmp, /var/tmp, /dev/shm or $XDG_RUNTIME_DIR: the first in which it can make a
  // socket. The last only if it is this user's: it is deleted when its owner logs out, and `sudo -E` passes on another
  // user's.
  static Result<std::unique_ptr<WorkerSocket>> create(asio::io_context& io, const std::string& job_id);
  ~WorkerSocket();  // removes the directory and its contents, unless it is kept
  // For `drun clean`: a process of the job is left, and is known by this directory.
  void keep_directory() { is_kept_ = true; }
  const std::string& path() const { return path_; }
  const std::string& directory() const { return directory_; }
  static std::string path_in(const std::string& directory) { return directory + "/agent"; }
  // The path of a file beside the socket, which is removed with it.
  std::string file(const std::string& name) const { return directory_ + "/" + name; }
  // The open directory: a worker may have put a link in the place of its path.
  int directory_fd() const { return lock_.get(); }
  void set_handout(std::string encoded) { handout_ = std::move(encoded); }
  // From now on workers get shared memory: a memfd, created by `make` for the first one that connects. It has no name
  // and is freed with its last holder; libdrun defines its contents. It may grow but not shrink, because access to
  // pages that one worker has cut off would kill the others. `missing` is called once if there can be none.
  using MakeMemory = std::function<Result<Fd>()>;
  using Missing = std::function<void(const Error&)>;
  void share_memory(
      Missing missing, MakeMemory make = [] { return make_memory_file("drun"); });
  // The source of each worker's flight recorder; must outlive this. Without it workers get none.
  void record(Recorders& recorders) { recorders_ = &recorders; }
  Task<void> run();
  void stop();

 private:
  explicit WorkerSocket(asio::io_context& io);
  Task<void> serve(asio::local::stream_protocol::socket socket);

  asio::local::stream_protocol::acceptor acceptor_;
  TaskGroup sessions_;
  std::string directory_, path_, handout_;
  bool is_kept_ = false;
  Fd lock_;  // life_lock.h: for `drun clean`
  void make_memory();
  MakeMemory make_memory_;  // empty: the workers share none, or it was called
  Missing missing_;
  Fd memory_;
  Recorders* recorders_ = nullptr;
};

// Removes the directory that a killed agent left. True if it is gone.
bool remove_socket_directory(const std::string& directory);

}  // namespace drun::agent
