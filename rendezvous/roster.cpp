#include "rendezvous/roster.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace drun::rendezvous {

namespace {

constexpr std::size_t kMaxNamed = 8;

SharedBytes encoded_hosts(const std::vector<Member>& members) {
  std::vector<std::string> names;  // by host, "" for a host without ranks
  std::vector<int> hosts;
  for (const Member& member : members) {
    const auto host = static_cast<std::size_t>(member.host_index);
    names.resize(std::max(names.size(), host + 1));
    names[host] = member.host;
    hosts.push_back(member.host_index);
  }
  return std::make_shared<const std::string>(encode_hosts(names, hosts));
}

}  // namespace

Roster::Roster(std::vector<Member> members, std::string job_id)
    : members_(std::move(members)),
      seats_(members_.size()),
      job_id_(std::move(job_id)),
      hosts_(encoded_hosts(members_)) {}

Result<void> Roster::join(int rank, int pid) {
  if (!has(rank)) {
    return fail(Errc::kProtocol, "rank " + std::to_string(rank) + " does not exist: the job has ranks 0 to " +
                                     std::to_string(size() - 1));
  }
  Seat& s = seat(rank);
  if (s.state == State::kJoined) {
    return fail(Errc::kProtocol, "rank " + std::to_string(rank) + " has already joined: pid " + std::to_string(s.pid) +
                                     " on " + host(rank));
  }
  if (s.epoch == epoch_ || spoiler_of(epoch_) >= 0) {
    ++epoch_;
    n_came_ = 0;
    forget_if_over(epoch_ - 1);
  }
  ++n_came_;
  ++n_joined_;
  ++joined_in_[epoch_];
  s.state = State::kJoined;
  s.epoch = epoch_;
  s.pid = pid;
  return {};
}

void Roster::leave(int rank, bool orderly) {
  Seat& s = seat(rank);
  s.state = orderly ? State::kLeft : State::kLost;
  --n_joined_;
  if (const auto count = joined_in_.find(s.epoch); --count->second == 0) joined_in_.erase(count);
  if (s.epoch == epoch_ && n_came_ < size()) spoilers_.emplace(epoch_, rank);
  forget_if_over(s.epoch);
}

void Roster::forget_if_over(int epoch) {
  if (epoch != epoch_ && joined_in(epoch) == 0) spoilers_.erase(epoch);
}

int Roster::spoiler_of(int epoch) const {
  const auto found = spoilers_.find(epoch);
  return found == spoilers_.end() ? -1 : found->second;
}

void Roster::note(int rank, std::string text) {
  if (has(rank)) seat(rank).note = std::move(text);
}

std::vector<int> Roster::joined() const {
  std::vector<int> out;
  for (int rank = 0; rank < size(); ++rank) {
    if (is_joined(rank)) out.push_back(rank);
  }
  return out;
}

int Roster::joined_in(int epoch) const {
  const auto found = joined_in_.find(epoch);
  return found == joined_in_.end() ? 0 : found->second;
}

std::vector<int> Roster::absent(int epoch) const {
  std::vector<int> out;
  for (int rank = 0; rank < size(); ++rank) {
    if (!is_joined(rank) || epoch_of(rank) != epoch) out.push_back(rank);
  }
  return out;
}

WelcomePlace Roster::welcome(int rank) const {
  const Member& m = members_[static_cast<std::size_t>(rank)];
  WelcomePlace out;
  out.job_id = job_id_;
  out.epoch = epoch_of(rank);
  out.rank = rank;
  out.size = size();
  out.local_rank = m.local_rank;
  out.local_size = m.local_size;
  out.cross_rank = m.cross_rank;
  out.cross_size = m.cross_size;
  return out;
}

std::string Roster::name(int rank) const {
  return "rank " + std::to_string(rank) + (has(rank) ? " on " + host(rank) : "");
}

std::string Roster::describe(int rank, int epoch) const {
  std::string out = name(rank);
  if (!has(rank)) return out;
  const Seat& s = seat(rank);
  if (s.epoch < epoch) {
    std::string why = s.note;
    if (s.state == State::kJoined) why = "pid " + std::to_string(s.pid) + " is in epoch " + std::to_string(s.epoch);
    out += " (has not joined" + (epoch > 1 ? " epoch " + std::to_string(epoch) : "");
    return out + (why.empty() ? "" : "; " + why) + ")";
  }
  if (s.epoch > epoch) return out + " (is in epoch " + std::to_string(s.epoch) + ")";
  if (s.state == State::kLeft) out += " (left)";
  if (s.state == State::kLost) out += " (disconnected)";
  return out;
}

std::string Roster::describe(const std::vector<int>& ranks, int epoch) const {
  std::string out;
  for (std::size_t i = 0; i < std::min(ranks.size(), kMaxNamed); ++i) {
    if (i > 0) out += ", ";
    out += describe(ranks[i], epoch);
  }
  if (ranks.size() > kMaxNamed) out += " and " + std::to_string(ranks.size() - kMaxNamed) + " more";
  return out;
}

}  // namespace drun::rendezvous
