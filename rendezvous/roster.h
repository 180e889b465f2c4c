// The ranks of the job: which have joined, which have left, and in which epoch. Pure.
//
// A worker may run several programs that use libdrun, one after the other. Each start of all ranks is an epoch, from 1.
// A rank that joins enters the current epoch. It begins the next epoch instead if it has been in the current one
// before, or if a rank has left the current one before all ranks had joined. Because drun_init waits for all ranks, the
// ranks of one program meet in one epoch, even if some of them had to start several times.
#pragma once

#include <map>
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

  // kProtocol: no such rank, or it is in the job already. A rank that has left may join again.
  Result<void> join(int rank, int pid);
  bool is_joined(int rank) const { return has(rank) && seat(rank).state == State::kJoined; }
  // The rank must have joined. `orderly`: it has sent LEAVE.
  void leave(int rank, bool orderly);
  // Sets a text for describe() about a rank that has not joined.
  void note(int rank, std::string text);
  std::vector<int> joined() const;

  int epoch() const { return epoch_; }
  // The latest epoch that the rank has joined; 0: none.
  int epoch_of(int rank) const { return seat(rank).epoch; }
  // The first rank that left `epoch` before all had joined, so that it can't become complete; -1: none.
  int spoiler_of(int epoch) const;
  // Number of ranks that are in the job now, in this epoch.
  int joined_in(int epoch) const;
  // Number of ranks that are not in the job now.
  int n_absent() const { return size() - n_joined_; }

  WelcomePlace welcome(int rank) const;
  // The hosts in WELCOME, encoded once.
  const SharedBytes& hosts() const { return hosts_; }
  const std::string& host(int rank) const { return members_[static_cast<std::size_t>(rank)].host; }
  std::string name(int rank) const;  // "rank 3 on node7"
  // The name, and why the rank is absent from this epoch, if it is: "(has not joined)", "(left)", "(disconnected)",
  // "(is in epoch 2)".
  std::string describe(int rank, int epoch) const;
  // Describes several ranks, at most 8 and then "and N more"; empty for none.
  std::string describe(const std::vector<int>& ranks, int epoch) const;
  // Ranks that are not in the job now, in this epoch.
  std::vector<int> absent(int epoch) const;

 private:
  enum class State { kExpected, kJoined, kLeft, kLost };
  struct Seat {
    State state = State::kExpected;
    int epoch = 0;
    int pid = 0;
    std::string note;
  };
  const Seat& seat(int rank) const { return seats_[static_cast<std::size_t>(rank)]; }
  Seat& seat(int rank) { return seats_[static_cast<std::size_t>(rank)]; }
  void forget_if_over(int epoch);

  std::vector<Member> members_;
  std::vector<Seat> seats_;  // by rank
  int epoch_ = 1;
  int n_came_ = 0;                // ranks that have joined this epoch
  int n_joined_ = 0;              // ranks that are in the job now
  std::map<int, int> joined_in_;  // the same by epoch; no zeros
  std::map<int, int> spoilers_;   // by epoch; only of the current epoch and of those that have a rank
  std::string job_id_;
  SharedBytes hosts_;
};

}  // namespace drun::rendezvous
