#include "runtime/src/backend/culprit.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "base/bytes.h"

namespace drun::runtime {
namespace {

// The others' deadlines pass when ours does, give or take what they were late for the call.
constexpr std::chrono::milliseconds kNoteWait{2000};

constexpr std::chrono::milliseconds kLongWait{1000};

// One for each rank.
std::string note_key(const World& world, int rank) { return world.own_key("waits/" + std::to_string(rank)); }

struct Note {
  std::uint32_t comm = 0;
  std::uint64_t seq = 0;
  std::string call;
  std::vector<std::int32_t> waits_for;
};

std::string encode(const Note& note) {
  ByteWriter out;
  out.u32(note.comm);
  out.u64(note.seq);
  out.str(note.call);
  for (const auto rank : note.waits_for) out.i32(rank);
  return out.take();
}

Note decode(const std::string& bytes) {
  ByteReader in(bytes);
  Note note;
  note.comm = in.u32();
  note.seq = in.u64();
  note.call = in.str();
  while (in.ok() && in.left() > 0) note.waits_for.push_back(in.i32());
  return note;
}

void write_note(const World& world, const Note& note) {
  (void)world.client->set(note_key(world, world.rank()), encode(note), true);
}

Note note_of(const Group& group, const Operation& operation, const std::vector<int>& waited_for) {
  Operation unnamed = operation;
  unnamed.name.clear();
  return {operation.comm, operation.seq, describe_in(group, std::move(unnamed)), waited_for};
}

}  // namespace

void WaitNote::waiting(const World& world, const Group& group, const Operation& operation,
                       const std::function<std::vector<int>()>& waited_for) {
  const auto now = Clock::now();
  if (std::exchange(call_, operation.deadline) != operation.deadline) began_ = now;
  if (now - began_ < kLongWait || is_of_two(operation)) return;
  auto ranks = waited_for();
  if (ranks == told_) return;
  write_note(world, note_of(group, operation, ranks));
  told_ = std::move(ranks);
}

void WaitNote::done(const World& world) {
  call_ = {};  // the next wait counts by itself
  if (told_.empty()) return;
  told_.clear();
  write_note(world, Note{});
}

std::string describe_in(const Group& group, Operation operation) {
  operation.root = group.world_rank_of_root(operation.root);
  return describe(operation);
}

Culprit find_culprit(const World& world, const Group& group, const Operation& operation,
                     const std::vector<int>& waited_for) {
  if (is_of_two(operation)) return {waited_for.front(), {}};
  const Note ours = note_of(group, operation, waited_for);
  write_note(world, ours);

  const auto until = Clock::now() + kNoteWait;
  std::set<int> seen{world.rank()};
  std::vector<int> open = waited_for;
  while (!open.empty()) {
    const int rank = open.back();
    open.pop_back();
    if (!seen.insert(rank).second) continue;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    const auto bytes = world.client->get(note_key(world, rank), std::max(left, std::chrono::milliseconds(1)));
    if (!bytes) return {rank, {}};
    const Note theirs = decode(*bytes);
    if (theirs.waits_for.empty()) return {rank, {}};
    // Ranks that are in no communicator of ours may have one of the same number.
    const bool same_comm = theirs.comm == ours.comm && group.member_of(rank) >= 0;
    if (same_comm && theirs.seq == ours.seq && theirs.call != ours.call) return {rank, theirs.call};
    open.insert(open.end(), theirs.waits_for.begin(),
                theirs.waits_for.end());  // also if it is still in an earlier call
  }
  return {waited_for.front(), {}};
}

Failure timeout_failure(const World& world, const Group& group, const Operation& operation,
                        const std::vector<int>& waited_for, const std::function<std::string(int rank)>& why_not) {
  const Culprit culprit = find_culprit(world, group, operation, waited_for);
  if (!culprit.call.empty()) return mismatch_failure(world, group, operation, culprit.rank, culprit.call);
  Failure result{DRUN_ERROR_TIMEOUT,
                 name_of(operation) + " timed out after " + in_words(operation.timeout) + " waiting for " +
                     world.name_of(culprit.rank),
                 culprit.rank, world.host_of(culprit.rank)};
  const std::string reason = why_not ? why_not(culprit.rank) : "";
  if (!reason.empty()) result.text += " (" + reason + ")";
  publish_failure(world, result);
  return result;
}

Failure mismatch_failure(const World& world, const Group& group, const Operation& operation, int peer,
                         const std::string& their_call) {
  Failure result{DRUN_ERROR_MISMATCH,
                 world.name_of(peer) + " called " + their_call + " while " + world.name_of(world.rank()) + " called " +
                     describe_in(group, operation),
                 peer, world.host_of(peer)};
  publish_failure(world, result);
  return result;
}

}  // namespace drun::runtime
