// The server's state for a job: keys and values, barriers, NCCL ids, and the requests that wait for them. Each belongs
// to an epoch (roster.h) and is visible only to ranks of that epoch. Pure: no I/O and no clock. Callers pass the time;
// a step returns the replies that it causes, in the order in which they must be sent.
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

// The origin of a request: the connection, its rank, the request's number, and the rank's epoch.
struct Asker {
  std::uint64_t session = 0;
  int rank = 0;
  std::uint32_t request = 0;
  int epoch = 1;
};

struct StoreReply {
  std::uint64_t session = 0;
  ServerMessage message;
};
using StoreReplies = std::vector<StoreReply>;

struct StoreLimits {
  std::size_t bytes = 256u << 20;  // total of keys and values
  std::size_t waits_per_session = 64;
  std::size_t names = 1u << 20;  // maximum number of keys, and of NCCL ids
};

class Store {
 public:
  // `roster` must outlive it.
  explicit Store(const Roster& roster, StoreLimits limits = {}) : roster_(roster), limits_(limits) {}

  StoreReplies set(const Asker& asker, SetMessage message);
  StoreReplies get(const Asker& asker, const GetMessage& message, StoreTime now);
  // Later GETs of the key wait until it is set again.
  StoreReplies erase(const Asker& asker, const DeleteMessage& message);
  // Completes when every rank of the job waits in it; then the name can be used again.
  StoreReplies barrier(const Asker& asker, const BarrierMessage& message, StoreTime now);
  StoreReplies nccl_put(const Asker& asker, NcclPutMessage message);
  StoreReplies nccl_get(const Asker& asker, const NcclGetMessage& message, StoreTime now);

  // Ends the waits whose deadline has passed.
  StoreReplies expire(StoreTime now);
  std::optional<StoreTime> next_deadline() const;
  // For a connection that is gone: drops its waits and removes its rank from barriers.
  void forget(std::uint64_t session);
  // Called after a rank has joined or left. Ends waits of earlier epochs that can't succeed any more (kPeerFailed), and
  // drops the data of epochs that have no rank left.
  StoreReplies close_epochs();

  std::size_t bytes() const { return bytes_; }
  std::size_t waits() const { return waits_.size(); }
  // Number of keys, NCCL ids and barriers.
  std::size_t names() const { return values_.size() + nccl_ids_.size() + nccl_by_id_.size() + barriers_.size(); }

 private:
  using Name = std::pair<int, std::string>;  // epoch, name
  using NcclKey = std::pair<Name, int>;      // communicator, attempt
  struct Wait {
    enum class Kind { kKey, kBarrier, kNccl } kind = Kind::kKey;
    Asker asker;
    Name name;  // key, barrier or communicator
    int attempt = 0;
    int root = 0;
    StoreTime deadline;
    std::uint32_t timeout_ms = 0;
  };
  struct Barrier {
    std::map<int, std::uint64_t> waiting;  // rank -> wait
    std::set<int> gave_up;                 // ranks whose wait timed out
  };
  struct NcclId {
    bool ok = true;
    std::string id_or_reason;
    int root = 0;
  };
  using WaitId = std::uint64_t;
  std::optional<ErrorReply> refuse_wait(const Wait& wait) const;
  // The error of a wait that can't succeed, because the ranks that it needs are in a later epoch.
  std::optional<ErrorReply> left_behind(const Wait& wait) const;
  static Wait wait_of(Wait::Kind kind, const Asker& asker, std::string name, std::uint32_t timeout_ms, StoreTime now);
  void leave_barrier(const Wait& wait);
  void forget_epoch(int epoch);
  WaitId add_wait(Wait wait);
  Wait remove_wait(WaitId id);
  // Texts of one expire(): waits of one barrier, or keys of one epoch, share theirs, which walk all ranks.
  struct Texts {
    std::map<Name, std::string> barriers;
    std::map<int, std::string> absent;  // by epoch
  };
  std::string timeout_text(const Wait& wait, Texts& texts) const;
  std::string barrier_text(const Name& name) const;
  static ServerMessage nccl_reply(const Roster& roster, std::uint32_t request, const NcclId& id);

  const Roster& roster_;
  StoreLimits limits_;
  std::size_t bytes_ = 0;
  WaitId last_wait_ = 0;
  int first_epoch_ = 1;  // the oldest epoch with data
  std::map<Name, SharedBytes> values_;
  std::map<NcclKey, NcclId> nccl_ids_;
  std::map<std::string, NcclKey> nccl_by_id_;
  std::map<Name, Barrier> barriers_;
  std::map<WaitId, Wait> waits_;
  std::set<std::pair<StoreTime, WaitId>> by_deadline_;
  std::map<Name, std::set<WaitId>> key_waits_;
  std::map<NcclKey, std::set<WaitId>> nccl_waits_;
  std::map<std::uint64_t, std::set<WaitId>> session_waits_;
  std::map<int, std::set<WaitId>> epoch_waits_;
};

}  // namespace drun::rendezvous
