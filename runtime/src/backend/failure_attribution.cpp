#include "runtime/src/backend/failure_attribution.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/units.h"

namespace drun::runtime {
namespace {

// The deadlines of other ranks pass when ours does, apart from the time by which they entered the call late.
constexpr std::chrono::milliseconds kNoteWait{2000};

constexpr std::chrono::milliseconds kLongWait{1000};

constexpr std::size_t kMaxLinks = 4;  // maximum number of waits of a chain in an error text

// The key of a rank's note.
std::string note_key(int rank) { return own_key("waits/" + std::to_string(rank)); }

struct Note {
  std::uint32_t comm = 0;
  std::uint64_t seq = 0;
  bool of_two = false;  // a send or receive, whose seq is counted per peer
  std::string call;
  std::vector<std::int32_t> waits_for;
};

std::string encode(const Note& note) {
  ByteWriter out;
  out.u32(note.comm);
  out.u64(note.seq);
  out.u8(note.of_two ? 1 : 0);
  out.str(note.call);
  for (const auto rank : note.waits_for) out.i32(rank);
  return out.take();
}

Note decode(const std::string& bytes) {
  ByteReader in(bytes);
  Note note;
  note.comm = in.u32();
  note.seq = in.u64();
  note.of_two = in.u8() != 0;
  note.call = in.str();
  while (in.ok() && in.left() > 0) note.waits_for.push_back(in.i32());
  return note;
}

void write_note(const JobContext& job_context, const Note& note) {
  (void)job_context.client->set(note_key(job_context.rank()), encode(note), true);
}

Note note_of(const Group& group, const Operation& operation, const std::vector<int>& waited_for) {
  Operation unnamed = operation;
  unnamed.name.clear();
  const bool of_two = is_of_two(operation);
  const bool of_several = of_two && std::set<int>(waited_for.begin(), waited_for.end()).size() > 1;
  std::string call = of_several ? "a group of sends and receives" : describe_in(group, std::move(unnamed));
  return {operation.comm, operation.seq, of_two, std::move(call), waited_for};
}

// The notes of other ranks, and the path by which the search came to each.
class Walk {
 public:
  explicit Walk(int own_rank) : own_(own_rank) {}
  // Returns false if the search has been there.
  bool comes_to(int rank, int from) { return rank != own_ && from_.emplace(rank, from).second; }
  void add(int rank, Note note) { notes_[rank] = std::move(note); }

  // The search ends at a rank that waits for no other.
  Attribution ends_at(int rank) const { return {rank, {}, chain_to(rank)}; }

  // Every rank waits for another one.
  Attribution is_circle(const Operation& ours, int first) const {
    int rank = first;
    const auto of_two = std::find_if(notes_.begin(), notes_.end(), [](const auto& note) { return note.second.of_two; });
    if (!is_of_two(ours) && of_two != notes_.end()) rank = of_two->first;
    if (!is_of_two(ours) && of_two == notes_.end()) return {rank, {}, {}};
    std::vector<int> path{rank};
    std::set<int> seen{rank};
    for (auto note = notes_.find(rank); note != notes_.end(); note = notes_.find(path.back())) {
      path.push_back(note->second.waits_for.front());
      if (!seen.insert(path.back()).second) break;
    }
    return {rank, {}, text_of(path)};
  }

 private:
  std::string chain_to(int rank) const {
    std::vector<int> path;
    for (; rank != own_; rank = from_.at(rank)) path.insert(path.begin(), rank);
    const bool told = std::any_of(path.begin(), path.end() - 1, [&](int via) { return notes_.at(via).of_two; });
    return told ? text_of(path) : "";
  }

  std::string text_of(const std::vector<int>& path) const {
    std::string text;
    for (std::size_t i = 0; i + 1 < path.size(); ++i) {
      if (path.size() - 1 > kMaxLinks && i == kMaxLinks - 1) {  // the last one is still to be reported
        text += ", and so on";
        i = path.size() - 2;
      }
      text += (text.empty() ? "rank " : ", rank ") + std::to_string(path[i]) + " waits for rank " +
              std::to_string(path[i + 1]) + " in " + notes_.at(path[i]).call;
    }
    return text;
  }

  int own_;
  std::map<int, Note> notes_;
  std::map<int, int> from_;
};

}  // namespace

void WaitNote::waiting(const JobContext& job_context, const Group& group, const Operation& operation,
                       const std::function<std::vector<int>()>& waited_for) {
  const auto now = Clock::now();
  if (std::exchange(call_, operation.deadline()) != operation.deadline()) began_ = now;
  if (now - began_ < kLongWait) return;
  auto ranks = waited_for();
  if (ranks == told_ && number_ == job_context.n_wait_notes) return;
  write_note(job_context, note_of(group, operation, ranks));
  told_ = std::move(ranks);
  number_ = ++job_context.n_wait_notes;
}

void WaitNote::done(const JobContext& job_context) {
  call_ = {};  // the next wait counts by itself
  if (told_.empty()) return;
  told_.clear();
  if (number_ != job_context.n_wait_notes) return;  // overwritten by a later note
  write_note(job_context, Note{});
  ++job_context.n_wait_notes;
}

std::string describe_in(const Group& group, Operation operation) {
  operation.root = group.world_rank_of_root(operation.root);
  return describe(operation);
}

Attribution attribute_timeout(const JobContext& job_context, const Group& group, const Operation& operation,
                              const std::vector<int>& waited_for) {
  const Note ours = note_of(group, operation, waited_for);
  write_note(job_context, ours);

  const auto until = Clock::now() + kNoteWait;
  Walk walk(job_context.rank());
  std::vector<std::pair<int, int>> open;  // ranks and the rank that waits for each; the last comes next
  const auto follow = [&](int from, const std::vector<int>& ranks) {
    for (auto rank = ranks.rbegin(); rank != ranks.rend(); ++rank) open.emplace_back(*rank, from);
  };
  follow(job_context.rank(), waited_for);
  while (!open.empty()) {
    const auto [rank, from] = open.back();
    open.pop_back();
    if (!walk.comes_to(rank, from)) continue;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    const auto bytes = job_context.client->get(note_key(rank), std::max(left, std::chrono::milliseconds(1)));
    if (!bytes) return walk.ends_at(rank);
    const Note theirs = decode(*bytes);
    if (theirs.waits_for.empty()) return walk.ends_at(rank);
    // Ranks outside this communicator may have another one of the same number.
    const bool same_comm = theirs.comm == ours.comm && group.member_of(rank) >= 0;
    const bool both_of_all = !theirs.of_two && !ours.of_two;
    if (both_of_all && same_comm && theirs.seq == ours.seq && theirs.call != ours.call) return {rank, theirs.call, {}};
    follow(rank, theirs.waits_for);  // also if it is still in an earlier call
    walk.add(rank, theirs);
  }
  return walk.is_circle(operation, waited_for.front());
}

Failure timeout_failure(const JobContext& job_context, const Group& group, const Operation& operation,
                        const std::vector<int>& waited_for, const std::function<std::string(int rank)>& why_not) {
  const Attribution attribution = attribute_timeout(job_context, group, operation, waited_for);
  if (!attribution.call.empty())
    return mismatch_failure(job_context, group, operation, attribution.rank, attribution.call);
  Failure result{DRUN_ERROR_TIMEOUT,
                 name_of(operation) + " timed out after " + limit_text(operation.timeout) + " waiting for " +
                     job_context.name_of(attribution.rank),
                 attribution.rank, job_context.host_of(attribution.rank)};
  const std::string reason = why_not ? why_not(attribution.rank) : "";
  if (!reason.empty()) result.text += " (" + reason + ")";
  if (!attribution.chain.empty()) result.text += ": " + attribution.chain;
  publish_failure(job_context, result);
  return result;
}

Failure mismatch_failure(const JobContext& job_context, const Group& group, const Operation& operation, int peer,
                         const std::string& their_call) {
  const std::string own_call = describe_in(group, operation);
  Failure result{DRUN_ERROR_MISMATCH,
                 job_context.name_of(peer) + " called " + their_call + " while " +
                     job_context.name_of(job_context.rank()) + " called " + own_call,
                 peer, job_context.host_of(peer)};
  if (own_call == their_call) result.text += "; their names differ in what is not shown of them";
  publish_failure(job_context, result);
  return result;
}

}  // namespace drun::runtime
