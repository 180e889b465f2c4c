// Where the members of a communicator of the stand-in for NCCL meet: threads of one process, or processes of one host.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace drun::fakes {

// All members' threads. What waits ends early once `gives_up` says so; whoever makes it say so calls wake().
class Meeting {
 public:
  using GivesUp = std::function<bool()>;
  virtual ~Meeting() = default;
  virtual void come(int rank) = 0;
  virtual int n_come() = 0;
  virtual void wait_for_all() = 0;
  // What each member has brought to its call of that number, by rank; nothing if it was given up.
  virtual std::vector<std::string> exchange(int number, int rank, std::string own, const GivesUp& gives_up) = 0;
  virtual void post(int from, int to, std::string letter) = 0;
  virtual std::optional<std::string> receive(int from, int to, const GivesUp& gives_up) = 0;
  virtual void end(int rank) = 0;
  virtual void wait_for_ends() = 0;  // of all members, or of their processes
  virtual void wake() = 0;
};

// Of `size` members, who know it by `name`. $DRUN_FAKE_NCCL_FOLDER: they are processes, which meet in this folder, and
// leave files there; else threads.
std::shared_ptr<Meeting> meeting_of(const std::string& name, int size);

}  // namespace drun::fakes
