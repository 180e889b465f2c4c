// Who belongs to the job, who has joined, who is gone, and in which epoch. Pure.
//
// A worker may run several programs of libdrun one after the other. Each start of them all is an epoch, from 1. A rank
// that joins is in the current epoch; one that has been in it before begins the next, and so does one that comes after
// a rank has gone from an epoch that not all had joined. Since drun_init waits for all ranks, those of one program meet
// in one epoch, also where some of them had to start several times.
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

  // kProtocol: no such rank, or it is in the job already. A rank that is gone may come again.
  Result<void> join(int rank, int pid);
  bool is_joined(int rank) const { return has(rank) && seat(rank).state == State::kJoined; }
  // Orderly or not; the rank must have joined.
  void leave(int rank, bool orderly);
  // For describe() of a rank that has not joined.
  void note(int rank, std::string text);
  std::vector<int> joined() const;

  int epoch() const { return epoch_; }
  // The latest one that the rank has joined; 0: none.
  int epoch_of(int rank) const { return seat(rank).epoch; }
  // Who has gone from it before all had joined; -1: nobody. It can't become complete.
  int spoiler_of(int epoch) const;
  // How many ranks are in the job now, and in this epoch.
  int joined_in(int epoch) const;

  Welcome welcome(int rank) const;
  const std::string& host(int rank) const { return members_[static_cast<std::size_t>(rank)].host; }
  std::string name(int rank) const;  // "rank 3 on node7"
  // The name, and why it can't be waited for in this epoch: "(has not joined)", "(left)", "(disconnected)", "(is in
  // epoch 2)".
  std::string describe(int rank, int epoch) const;
  // Several of them, at most 8 and then "and N more"; empty for none.
  std::string describe(const std::vector<int>& ranks, int epoch) const;
  // Those that are not in this epoch of the job now.
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

  std::vector<Member> members_;
  std::vector<Seat> seats_;  // by rank
  int epoch_ = 1;
  int n_came_ = 0;               // ranks that have joined this epoch
  std::map<int, int> spoilers_;  // by epoch
  std::string job_id_;
};

}  // namespace drun::rendezvous
