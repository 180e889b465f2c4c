// Who belongs to the job, who has joined, who is gone. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "rendezvous/member.h"
#include "rendezvous/protocol.h"

namespace drun::rendezvous {

class Roster {
 public:
  // `members` in rank order, ranks 0 to n-1.
  Roster(std::vector<Member> members, std::string job_id);
  int size() const { return static_cast<int>(members_.size()); }
  bool has(int rank) const { return rank >= 0 && rank < size(); }

  // kProtocol: no such rank, or it is in the job already. A rank that is gone may come again.
  Result<void> join(int rank, int pid);
  // Orderly or not; the rank must have joined.
  void leave(int rank, bool orderly);
  // For describe() of a rank that has not joined.
  void note(int rank, std::string text);
  std::vector<int> joined() const;

  Welcome welcome(int rank) const;
  const std::string& host(int rank) const { return members_[static_cast<std::size_t>(rank)].host; }
  std::string name(int rank) const;  // "rank 3 on node7"
  // The name, and why it can't be waited for: "(has not joined)", "(left)", "(disconnected)".
  std::string describe(int rank) const;
  // Several of them, at most 8 and then "and N more"; empty for none.
  std::string describe(const std::vector<int>& ranks) const;
  // Those that are not in the job now.
  std::vector<int> absent() const;

 private:
  enum class State { kExpected, kJoined, kLeft, kLost };
  std::vector<Member> members_;
  std::vector<State> states_;
  std::vector<int> pids_;
  std::vector<std::string> notes_;
  std::string job_id_;
};

}  // namespace drun::rendezvous
