#include "rendezvous/roster.h"

#include <algorithm>
#include <utility>

namespace drun::rendezvous {

namespace {
constexpr std::size_t kMostNamed = 8;
}  // namespace

Roster::Roster(std::vector<Member> members, std::string job_id)
    : members_(std::move(members)),
      states_(members_.size(), State::kExpected),
      pids_(members_.size(), 0),
      notes_(members_.size()),
      job_id_(std::move(job_id)) {}

Result<void> Roster::join(int rank, int pid) {
  if (!has(rank)) {
    return fail(Errc::kProtocol, "rank " + std::to_string(rank) + " does not exist: the job has ranks 0 to " +
                                     std::to_string(size() - 1));
  }
  const auto i = static_cast<std::size_t>(rank);
  if (states_[i] == State::kJoined) {
    return fail(Errc::kProtocol, "rank " + std::to_string(rank) + " has already joined: pid " +
                                     std::to_string(pids_[i]) + " on " + members_[i].host);
  }
  states_[i] = State::kJoined;
  pids_[i] = pid;
  return {};
}

void Roster::leave(int rank, bool orderly) {
  states_[static_cast<std::size_t>(rank)] = orderly ? State::kLeft : State::kLost;
}

void Roster::note(int rank, std::string text) {
  if (has(rank)) notes_[static_cast<std::size_t>(rank)] = std::move(text);
}

std::vector<int> Roster::joined() const {
  std::vector<int> out;
  for (int rank = 0; rank < size(); ++rank) {
    if (states_[static_cast<std::size_t>(rank)] == State::kJoined) out.push_back(rank);
  }
  return out;
}

std::vector<int> Roster::absent() const {
  std::vector<int> out;
  for (int rank = 0; rank < size(); ++rank) {
    if (states_[static_cast<std::size_t>(rank)] != State::kJoined) out.push_back(rank);
  }
  return out;
}

Welcome Roster::welcome(int rank) const {
  const Member& m = members_[static_cast<std::size_t>(rank)];
  Welcome out;
  out.job_id = job_id_;
  out.rank = rank;
  out.size = size();
  out.local_rank = m.local_rank;
  out.local_size = m.local_size;
  out.cross_rank = m.cross_rank;
  out.cross_size = m.cross_size;
  for (const Member& member : members_) {
    out.host_of_rank.push_back(member.host);
    out.host_index_of_rank.push_back(member.host_index);
  }
  return out;
}

std::string Roster::name(int rank) const {
  return "rank " + std::to_string(rank) + (has(rank) ? " on " + host(rank) : "");
}

std::string Roster::describe(int rank) const {
  std::string out = name(rank);
  if (!has(rank)) return out;
  const auto i = static_cast<std::size_t>(rank);
  if (states_[i] == State::kExpected) out += " (has not joined" + (notes_[i].empty() ? "" : "; " + notes_[i]) + ")";
  if (states_[i] == State::kLeft) out += " (left)";
  if (states_[i] == State::kLost) out += " (disconnected)";
  return out;
}

std::string Roster::describe(const std::vector<int>& ranks) const {
  std::string out;
  for (std::size_t i = 0; i < std::min(ranks.size(), kMostNamed); ++i) {
    if (i > 0) out += ", ";
    out += describe(ranks[i]);
  }
  if (ranks.size() > kMostNamed) out += " and " + std::to_string(ranks.size() - kMostNamed) + " more";
  return out;
}

}  // namespace drun::rendezvous
