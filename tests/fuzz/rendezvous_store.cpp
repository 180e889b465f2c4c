// The server's roster and store under any order of messages, deadlines and lost connections, as server.cpp calls them.
#include <map>
#include <set>

#include "rendezvous/store.h"
#include "tests/fuzz/fuzz.h"

namespace drun::fuzz {
namespace {

using namespace rendezvous;

constexpr int kRanks = 3;
constexpr std::size_t kSessions = 6;

class Job {
 public:
  void step(Input& in) {
    now_ += std::chrono::milliseconds(in.byte());
    const std::size_t session = in.below(kSessions);
    switch (in.below(4)) {
      case 0:
        return depart(session, false);
      case 1:
        return take(store_.expire(now_));
      default:
        if (auto message = decode_client_message(in.text())) handle(session, std::move(*message));
    }
  }

  // All connections end, and with them all waits.
  void end() {
    for (std::size_t session = 0; session < kSessions; ++session) depart(session, false);
    expect(store_.waits() == 0, "waits end with their connections");
    expect(!store_.next_deadline(), "without waits there is no deadline");
    expect(roster_.joined().empty(), "all have left");
  }

 private:
  void handle(std::size_t session, ClientMessage message) {
    if (const auto* join = std::get_if<JoinMessage>(&message)) {
      if (rank_of_.count(session) > 0) return depart(session, false);
      if (!roster_.join(join->rank, join->pid)) return;
      rank_of_[session] = join->rank;
      epoch_of_[session] = roster_.epoch();
      expect(roster_.welcome(join->rank).size == kRanks, "a welcome has the number of ranks");
      return take(store_.close_epochs());
    }
    if (rank_of_.count(session) == 0) return;
    const Asker asker{session, rank_of_[session], request_of(message), epoch_of_[session]};
    if (auto* set = std::get_if<SetMessage>(&message)) take(store_.set(asker, std::move(*set)));
    if (const auto* get = std::get_if<GetMessage>(&message)) take(store_.get(asker, *get, now_));
    if (const auto* barrier = std::get_if<BarrierMessage>(&message)) take(store_.barrier(asker, *barrier, now_));
    if (auto* put = std::get_if<NcclPutMessage>(&message)) take(store_.nccl_put(asker, std::move(*put)));
    if (const auto* get = std::get_if<NcclGetMessage>(&message)) take(store_.nccl_get(asker, *get, now_));
    if (std::holds_alternative<LeaveMessage>(message)) depart(session, true);
  }

  void depart(std::size_t session, bool orderly) {
    const auto found = rank_of_.find(session);
    if (found == rank_of_.end()) return;
    store_.forget(session);
    roster_.leave(found->second, orderly);
    rank_of_.erase(found);
    take(store_.close_epochs());
  }

  void take(const StoreReplies& replies) {
    for (const auto& reply : replies) {
      expect(rank_of_.count(reply.session) > 0, "only ranks that are in the job get replies");
      expect(encode(reply.message).size() <= kMaxFrame, "a reply fits in a frame");
    }
    expect(store_.bytes() <= kMaxBytes, "the store has a limit");
    expect(store_.waits() <= kSessions * 4, "waits have a limit");
  }

  static constexpr std::size_t kMaxBytes = 4096;
  static std::vector<Member> members() {
    std::vector<Member> out(kRanks);
    for (int rank = 0; rank < kRanks; ++rank) {
      out[static_cast<std::size_t>(rank)].rank = rank;
      out[static_cast<std::size_t>(rank)].host = "node";
    }
    return out;
  }

  Roster roster_{members(), "job"};
  Store store_{roster_, StoreLimits{kMaxBytes, 4, 16}};
  StoreTime now_{};
  std::map<std::size_t, int> rank_of_, epoch_of_;  // by session
};

void run(std::string_view bytes) {
  Input in(bytes);
  Job job;
  while (!in.empty()) job.step(in);
  job.end();
}

std::vector<std::string> seeds() {
  Script script;
  const auto say = [&](std::size_t session, const ClientMessage& message) {
    script.byte(1).byte(session).byte(2).text(encode(message));
  };
  for (int rank = 0; rank < kRanks; ++rank) say(static_cast<std::size_t>(rank), JoinMessage{rank, 100 + rank});
  const std::string all_in = script;
  say(0, GetMessage{1, "key", 200});
  say(1, SetMessage{2, "key", "value", false});
  say(2, SetMessage{3, "key", "other", false});
  for (std::size_t session = 0; session < 3; ++session) say(session, BarrierMessage{4, "start", 200});
  say(1, NcclGetMessage{5, "world", 1, 0, 200});
  say(0, NcclPutMessage{6, "world", 1, true, std::string(kNcclIdBytes, 'i')});
  const std::string good = script;
  script = Script();
  script.raw(all_in);
  say(0, BarrierMessage{4, "start", 100});
  say(1, GetMessage{5, "never", 50});
  script.byte(255).byte(0).byte(1);  // both are late
  say(0, LeaveMessage{9});
  say(3, JoinMessage{0, 300});
  script.byte(1).byte(1).byte(0);  // a lost connection
  const std::string bad = script;
  return {good, bad};
}

const Target kTarget("rendezvous_store", run, seeds);

}  // namespace
}  // namespace drun::fuzz
