// The Unix socket by which workers find their agent: $DRUN_AGENT. Hands out the job's key to processes of our own user.
#pragma once

#include <boost/asio/local/stream_protocol.hpp>
#include <memory>
#include <string>

#include "agent/recorders.h"
#include "base/asio.h"
#include "base/error.h"
#include "base/fd.h"

namespace drun::agent {

class WorkerSocket {
 public:
  // In a new directory of mode 0700 in the first writable place of $XDG_RUNTIME_DIR, /tmp, /var/tmp, /dev/shm.
  static Result<std::unique_ptr<WorkerSocket>> create(asio::io_context& io, const std::string& job_id);
  ~WorkerSocket();  // removes the directory with all that is in it
  const std::string& path() const { return path_; }
  const std::string& directory() const { return directory_; }
  static std::string path_in(const std::string& directory) { return directory + "/agent"; }
  // A name for a file beside the socket; it goes with it.
  std::string file(const std::string& name) const { return directory_ + "/" + name; }
  void set_handout(std::string encoded) { handout_ = std::move(encoded); }
  // From now on workers get memory that they share: a memfd, made for the first that asks. It has no name and goes with
  // its last holder; what is in it is libdrun's business.
  void share_memory() { shares_memory_ = true; }
  // Where each worker's flight recorder comes from; outlives this. Without it there is none.
  void record(Recorders& recorders) { recorders_ = &recorders; }
  Task<void> run();
  void stop();

 private:
  explicit WorkerSocket(asio::io_context& io);
  Task<void> serve(asio::local::stream_protocol::socket socket);

  asio::local::stream_protocol::acceptor acceptor_;
  TaskGroup sessions_;
  std::string directory_, path_, handout_;
  Fd lock_;  // life_lock.h: for `drun clean`
  bool shares_memory_ = false;
  Fd memory_;
  Recorders* recorders_ = nullptr;
};

// What an agent that was killed could not do. True if it is gone.
bool remove_socket_directory(const std::string& directory);

}  // namespace drun::agent
