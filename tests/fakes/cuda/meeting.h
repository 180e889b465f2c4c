// The meeting point of the members of a communicator of the NCCL stand-in: threads of one process, or processes of one
// host.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace drun::fakes {

// Used by the threads of all members. Waits end early once `gives_up` returns true; call wake() after changing its
// result.
class Meeting {
 public:
  using GivesUp = std::function<bool()>;
  virtual ~Meeting() = default;
  virtual void come(int rank) = 0;
  virtual int n_come() = 0;
  virtual void wait_for_all() = 0;
  // The contribution of each member to its call of that number, by rank; empty if given up.
  virtual std::vector<std::string> exchange(int number, int rank, std::string own, const GivesUp& gives_up) = 0;
  virtual void post(int from, int to, std::string letter) = 0;
  virtual std::optional<std::string> receive(int from, int to, const GivesUp& gives_up) = 0;
  virtual void end(int rank) = 0;
  virtual void wait_for_ends() = 0;  // of all members, or of their processes
  virtual void wake() = 0;
};

// The meeting of `size` members with this `name`. With $DRUN_FAKE_NCCL_FOLDER the members are processes, which meet in
// this folder and leave files there; else threads.
std::shared_ptr<Meeting> meeting_of(const std::string& name, int size);

}  // namespace drun::fakes
