// What the server keeps for a job, and who waits for what: keys and values, barriers, NCCL ids. Pure: no I/O and no
// clock; it is told the time and returns the replies that a step causes, in the order in which they must be sent.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "rendezvous/protocol.h"
#include "rendezvous/roster.h"

namespace drun::rendezvous {

using StoreTime = Clock::time_point;

// Who asked: the connection, the rank that it joined as, and its request.
struct Asker {
  std::uint64_t session = 0;
  int rank = 0;
  std::uint32_t request = 0;
};

struct StoreReply {
  std::uint64_t session = 0;
  ServerMessage message;
};
using StoreReplies = std::vector<StoreReply>;

struct StoreLimits {
  std::size_t bytes = 256u << 20;  // of all keys and values
  std::size_t waits_per_session = 64;
  std::size_t names = 1u << 20;  // of keys, and of NCCL ids
};

class Store {
 public:
  // `roster` must outlive it.
  explicit Store(const Roster& roster, StoreLimits limits = {}) : roster_(roster), limits_(limits) {}

  StoreReplies set(const Asker& asker, SetMessage message);
  StoreReplies get(const Asker& asker, const GetMessage& message, StoreTime now);
  // Complete when every rank of the job waits in it at once; then the name is free for the next round.
  StoreReplies barrier(const Asker& asker, const BarrierMessage& message, StoreTime now);
  StoreReplies nccl_put(const Asker& asker, NcclPutMessage message);
  StoreReplies nccl_get(const Asker& asker, const NcclGetMessage& message, StoreTime now);

  // The waits whose deadline has come.
  StoreReplies expire(StoreTime now);
  std::optional<StoreTime> next_deadline() const;
  // The connection is gone: its waits are dropped, its rank is out of the barriers it waited in.
  void forget(std::uint64_t session);

  std::size_t bytes() const { return bytes_; }
  std::size_t waits() const { return waits_.size(); }

 private:
  using NcclKey = std::pair<std::string, int>;  // communicator, attempt
  struct Wait {
    enum class Kind { kKey, kBarrier, kNccl } kind = Kind::kKey;
    Asker asker;
    std::string name;  // key, barrier or communicator
    int attempt = 0;
    int root = 0;
    StoreTime deadline;
    std::uint32_t timeout_ms = 0;
  };
  struct Barrier {
    std::map<int, std::uint64_t> waiting;  // rank -> wait
    std::set<int> gave_up;                 // ranks whose wait ended without the others
  };
  struct NcclId {
    bool ok = true;
    std::string id_or_reason;
    int root = 0;
  };
  using WaitId = std::uint64_t;
  std::optional<ErrorReply> refuse_wait(const Asker& asker) const;
  WaitId add_wait(Wait wait);
  Wait remove_wait(WaitId id);
  std::string timeout_text(const Wait& wait) const;
  static ServerMessage nccl_reply(const Roster& roster, std::uint32_t request, const NcclId& id);

  const Roster& roster_;
  StoreLimits limits_;
  std::size_t bytes_ = 0;
  WaitId last_wait_ = 0;
  std::map<std::string, std::string> values_;
  std::map<NcclKey, NcclId> nccl_ids_;
  std::map<std::string, NcclKey> nccl_by_id_;
  std::map<std::string, Barrier> barriers_;
  std::map<WaitId, Wait> waits_;
  std::set<std::pair<StoreTime, WaitId>> by_deadline_;
  std::map<std::string, std::set<WaitId>> key_waits_;
  std::map<NcclKey, std::set<WaitId>> nccl_waits_;
  std::map<std::uint64_t, std::set<WaitId>> session_waits_;
};

}  // namespace drun::rendezvous
