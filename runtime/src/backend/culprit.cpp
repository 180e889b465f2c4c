#include "runtime/src/backend/culprit.h"

#include <algorithm>
#include <set>
#include <string>

#include "base/text.h"

namespace drun::runtime {
namespace {

// The others' deadlines pass when ours does, give or take what they were late for the call.
constexpr std::chrono::milliseconds kNoteWait{2000};

std::string note_key(const World& world, const Operation& operation, int rank) {
  return world.own_key("waits/" + std::to_string(operation.seq) + "/" + std::to_string(rank));
}

}  // namespace

int find_culprit(const World& world, const Operation& operation, const std::vector<int>& waited_for) {
  std::vector<std::string> names;
  for (const int rank : waited_for) names.push_back(std::to_string(rank));
  (void)world.client->set(note_key(world, operation, world.rank()), join(names, " "));

  const auto until = Clock::now() + kNoteWait;
  std::set<int> seen{world.rank()};
  std::vector<int> open = waited_for;
  while (!open.empty()) {
    const int rank = open.back();
    open.pop_back();
    if (!seen.insert(rank).second) continue;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    const auto note = world.client->get(note_key(world, operation, rank), std::max(left, std::chrono::milliseconds(1)));
    if (!note) return rank;
    for (const auto part : split(*note, ' ')) {
      if (const auto next = parse_number(part)) open.push_back(static_cast<int>(*next));
    }
  }
  return waited_for.front();
}

Failure timeout_failure(const World& world, const Operation& operation, const std::vector<int>& waited_for) {
  const int culprit = find_culprit(world, operation, waited_for);
  Failure result{DRUN_ERROR_TIMEOUT,
                 name_of(operation) + " timed out after " + std::to_string(operation.timeout.count() / 1000) +
                     " s waiting for " + world.name_of(culprit),
                 culprit, world.host_of(culprit)};
  publish_failure(world, result);
  return result;
}

Failure mismatch_failure(const World& world, const Operation& operation, int peer, const Operation& theirs) {
  Failure result{DRUN_ERROR_MISMATCH,
                 world.name_of(peer) + " called " + describe(theirs) + " while " + world.name_of(world.rank()) +
                     " called " + describe(operation),
                 peer, world.host_of(peer)};
  publish_failure(world, result);
  return result;
}

}  // namespace drun::runtime
