#include "rendezvous/store.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <memory>

#include "base/clean_text.h"
#include "base/units.h"
#include "base/wording.h"

namespace drun::rendezvous {
namespace {

constexpr std::size_t kEntryOverhead = 128;  // approximate memory per key beside its bytes

std::size_t cost(const std::pair<int, std::string>& name, const std::string& value) {
  return name.second.size() + value.size() + kEntryOverhead;
}

StoreReplies one(const Asker& asker, ServerMessage message) {
  StoreReplies out;
  out.push_back({asker.session, std::move(message)});
  return out;
}

StoreReplies refused(const Asker& asker, std::string text) {
  return one(asker, ErrorReply{asker.request, Errc::kProtocol, std::move(text)});
}

// Names come from the program, so a name in an error is cleaned and cut.
std::string in_quotes(const std::string& name) {
  constexpr std::size_t kShown = 80;
  return "'" + clean_line(cut_text(name, kShown)) + (name.size() > kShown ? "...'" : "'");
}

}  // namespace

StoreReplies Store::set(const Asker& asker, SetMessage message) {
  Name name(asker.epoch, std::move(message.key));
  const auto found = values_.find(name);
  if (found != values_.end() && !message.overwrite && *found->second != message.value) {
    return refused(asker, "key " + in_quotes(name.second) + " already has another value");
  }
  const std::size_t before = found == values_.end() ? 0 : cost(name, *found->second);
  const std::size_t after = cost(name, message.value);
  if (bytes_ - before + after > limits_.bytes || (before == 0 && values_.size() >= limits_.names)) {
    return refused(asker, "the rendezvous store is full: " + std::to_string(bytes_) + " bytes of at most " +
                              std::to_string(limits_.bytes));
  }
  bytes_ = bytes_ - before + after;
  const auto value = std::make_shared<const std::string>(std::move(message.value));
  StoreReplies out = one(asker, DoneReply{asker.request});
  if (const auto waiting = key_waits_.find(name); waiting != key_waits_.end()) {
    const std::set<WaitId> ids = waiting->second;
    for (const WaitId id : ids) {
      const Wait wait = remove_wait(id);
      out.push_back({wait.asker.session, ValueReply{wait.asker.request, value}});
    }
  }
  values_.insert_or_assign(std::move(name), value);
  return out;
}

StoreReplies Store::get(const Asker& asker, const GetMessage& message, StoreTime now) {
  Wait wait = wait_of(Wait::Kind::kKey, asker, message.key, message.timeout_ms, now);
  if (const auto found = values_.find(wait.name); found != values_.end()) {
    return one(asker, ValueReply{asker.request, found->second});
  }
  if (auto refusal = refuse_wait(wait)) return one(asker, std::move(*refusal));
  add_wait(std::move(wait));
  return {};
}

StoreReplies Store::erase(const Asker& asker, const DeleteMessage& message) {
  const auto found = values_.find({asker.epoch, message.key});
  const bool existed = found != values_.end();
  if (existed) {
    bytes_ -= cost(found->first, *found->second);
    values_.erase(found);
  }
  return one(asker, DeletedReply{asker.request, existed});
}

StoreReplies Store::barrier(const Asker& asker, const BarrierMessage& message, StoreTime now) {
  Wait wait = wait_of(Wait::Kind::kBarrier, asker, message.name, message.timeout_ms, now);
  if (auto refusal = refuse_wait(wait)) return one(asker, std::move(*refusal));
  const Name name = wait.name;
  Barrier& barrier = barriers_[name];
  if (barrier.waiting.count(asker.rank) > 0) {
    return refused(asker,
                   "rank " + std::to_string(asker.rank) + " already waits in barrier " + in_quotes(message.name));
  }
  barrier.gave_up.erase(asker.rank);
  barrier.waiting[asker.rank] = add_wait(std::move(wait));
  if (barrier.waiting.size() < static_cast<std::size_t>(roster_.size())) return {};
  StoreReplies out;
  const auto everybody = barrier.waiting;
  for (const auto& [rank, id] : everybody) {
    const Wait done = remove_wait(id);
    out.push_back({done.asker.session, DoneReply{done.asker.request}});
  }
  barriers_.erase(name);
  return out;
}

ServerMessage Store::nccl_reply(const Roster& roster, std::uint32_t request, const NcclId& id) {
  if (id.ok) return ValueReply{request, std::make_shared<const std::string>(id.id_or_reason)};
  return ErrorReply{request, Errc::kPeerFailed, roster.name(id.root) + " has no NCCL id: " + id.id_or_reason};
}

StoreReplies Store::nccl_put(const Asker& asker, NcclPutMessage message) {
  const NcclKey key({asker.epoch, message.communicator}, message.attempt);
  const std::string where =
      "communicator " + in_quotes(message.communicator) + ", attempt " + std::to_string(message.attempt);
  if (const auto found = nccl_ids_.find(key); found != nccl_ids_.end()) {
    return refused(asker, where + ", already has its id, from rank " + std::to_string(found->second.root));
  }
  if (nccl_ids_.size() >= limits_.names) return refused(asker, "too many NCCL ids");
  if (message.ok) {
    const auto [earlier, is_new] = nccl_by_id_.emplace(message.id_or_reason, key);
    if (!is_new) {
      return refused(asker, where + ", must not have the id of communicator " +
                                in_quotes(earlier->second.first.second) + ", attempt " +
                                std::to_string(earlier->second.second));
    }
  }
  NcclId given{message.ok, std::move(message.id_or_reason), asker.rank};
  const NcclId& id = nccl_ids_.emplace(key, std::move(given)).first->second;
  StoreReplies out = one(asker, DoneReply{asker.request});
  if (const auto waiting = nccl_waits_.find(key); waiting != nccl_waits_.end()) {
    const std::set<WaitId> ids = waiting->second;
    for (const WaitId wait_id : ids) {
      const Wait wait = remove_wait(wait_id);
      out.push_back({wait.asker.session, nccl_reply(roster_, wait.asker.request, id)});
    }
  }
  return out;
}

StoreReplies Store::nccl_get(const Asker& asker, const NcclGetMessage& message, StoreTime now) {
  if (!roster_.has(message.root)) {
    return refused(asker, "the root " + std::to_string(message.root) + " of communicator " +
                              in_quotes(message.communicator) + " is no rank of this job");
  }
  Wait wait = wait_of(Wait::Kind::kNccl, asker, message.communicator, message.timeout_ms, now);
  wait.attempt = message.attempt;
  wait.root = message.root;
  if (const auto found = nccl_ids_.find({wait.name, wait.attempt}); found != nccl_ids_.end()) {
    return one(asker, nccl_reply(roster_, asker.request, found->second));
  }
  if (auto refusal = refuse_wait(wait)) return one(asker, std::move(*refusal));
  add_wait(std::move(wait));
  return {};
}

StoreReplies Store::expire(StoreTime now) {
  StoreReplies out;
  std::vector<WaitId> due;
  for (const auto& [deadline, id] : by_deadline_) {
    if (deadline > now) break;
    due.push_back(id);
  }
  // Composes all texts before removing waits, so that ranks with the same deadline don't report each other as late.
  Texts texts;
  for (const WaitId id : due) {
    const Wait& wait = waits_.at(id);
    out.push_back({wait.asker.session, ErrorReply{wait.asker.request, Errc::kTimeout, timeout_text(wait, texts)}});
  }
  for (const WaitId id : due) {
    const Wait wait = remove_wait(id);
    if (wait.kind == Wait::Kind::kBarrier) barriers_[wait.name].gave_up.insert(wait.asker.rank);
    leave_barrier(wait);
  }
  return out;
}

std::optional<StoreTime> Store::next_deadline() const {
  if (by_deadline_.empty()) return std::nullopt;
  return by_deadline_.begin()->first;
}

void Store::forget(std::uint64_t session) {
  const auto found = session_waits_.find(session);
  if (found == session_waits_.end()) return;
  const std::set<WaitId> ids = found->second;
  for (const WaitId id : ids) {
    leave_barrier(remove_wait(id));
  }
}

void Store::leave_barrier(const Wait& wait) {
  if (wait.kind != Wait::Kind::kBarrier) return;
  Barrier& barrier = barriers_[wait.name];
  barrier.waiting.erase(wait.asker.rank);
  if (barrier.waiting.empty()) barriers_.erase(wait.name);
}

StoreReplies Store::close_epochs() {
  StoreReplies out;
  if (first_epoch_ == roster_.epoch()) return out;
  std::vector<WaitId> hopeless;
  for (auto at = epoch_waits_.begin(); at != epoch_waits_.lower_bound(roster_.epoch()); ++at) {
    for (const WaitId id : at->second) {
      const Wait& wait = waits_.at(id);
      auto why = left_behind(wait);
      if (!why) continue;
      hopeless.push_back(id);
      out.push_back({wait.asker.session, std::move(*why)});
    }
  }
  for (const WaitId id : hopeless) leave_barrier(remove_wait(id));
  while (first_epoch_ < roster_.epoch() && roster_.joined_in(first_epoch_) == 0) forget_epoch(first_epoch_++);
  return out;
}

void Store::forget_epoch(int epoch) {
  const Name begin(epoch, ""), end(epoch + 1, "");
  const auto first_value = values_.lower_bound(begin), last_value = values_.lower_bound(end);
  for (auto at = first_value; at != last_value; ++at) bytes_ -= cost(at->first, *at->second);
  values_.erase(first_value, last_value);
  const auto first_id = nccl_ids_.lower_bound({begin, INT_MIN}), last_id = nccl_ids_.lower_bound({end, INT_MIN});
  for (auto at = first_id; at != last_id; ++at) {
    if (at->second.ok) nccl_by_id_.erase(at->second.id_or_reason);
  }
  nccl_ids_.erase(first_id, last_id);
}

std::optional<ErrorReply> Store::refuse_wait(const Wait& wait) const {
  if (auto why = left_behind(wait)) return why;
  const auto found = session_waits_.find(wait.asker.session);
  if (found == session_waits_.end() || found->second.size() < limits_.waits_per_session) return std::nullopt;
  return ErrorReply{wait.asker.request, Errc::kProtocol,
                    "too many waits at once: " + std::to_string(found->second.size())};
}

std::optional<ErrorReply> Store::left_behind(const Wait& wait) const {
  const int epoch = wait.asker.epoch;
  if (epoch == roster_.epoch()) return std::nullopt;
  int ahead = -1;  // the first rank in a later epoch that the wait needs
  if (wait.kind == Wait::Kind::kNccl) {
    if (roster_.epoch_of(wait.root) > epoch) ahead = wait.root;
  } else if (wait.kind == Wait::Kind::kBarrier || roster_.joined_in(epoch) == 1) {
    for (int rank = 0; rank < roster_.size() && ahead < 0; ++rank) {
      if (roster_.epoch_of(rank) > epoch) ahead = rank;
    }
  }
  if (ahead < 0) return std::nullopt;
  const int spoiler = roster_.spoiler_of(epoch);
  const std::string why = spoiler >= 0
                              ? roster_.name(spoiler) + " had gone from it before all ranks had joined"
                              : roster_.name(ahead) + " has begun epoch " + std::to_string(roster_.epoch_of(ahead)) +
                                    ", which is another program, or this one started again";
  return ErrorReply{wait.asker.request, Errc::kPeerFailed,
                    "left behind in epoch " + std::to_string(epoch) + ": " + why};
}

Store::Wait Store::wait_of(Wait::Kind kind, const Asker& asker, std::string name, std::uint32_t timeout_ms,
                           StoreTime now) {
  Wait wait;
  wait.kind = kind;
  wait.asker = asker;
  wait.name = {asker.epoch, std::move(name)};
  wait.timeout_ms = timeout_ms;
  wait.deadline = now + std::chrono::milliseconds(timeout_ms);
  return wait;
}

Store::WaitId Store::add_wait(Wait wait) {
  const WaitId id = ++last_wait_;
  by_deadline_.emplace(wait.deadline, id);
  session_waits_[wait.asker.session].insert(id);
  epoch_waits_[wait.asker.epoch].insert(id);
  if (wait.kind == Wait::Kind::kKey) key_waits_[wait.name].insert(id);
  if (wait.kind == Wait::Kind::kNccl) nccl_waits_[{wait.name, wait.attempt}].insert(id);
  waits_.emplace(id, std::move(wait));
  return id;
}

Store::Wait Store::remove_wait(WaitId id) {
  const auto drop = [id](auto& index, const auto& key) {
    const auto found = index.find(key);
    found->second.erase(id);
    if (found->second.empty()) index.erase(found);
  };
  Wait wait = std::move(waits_.at(id));
  waits_.erase(id);
  by_deadline_.erase({wait.deadline, id});
  drop(session_waits_, wait.asker.session);
  drop(epoch_waits_, wait.asker.epoch);
  if (wait.kind == Wait::Kind::kKey) drop(key_waits_, wait.name);
  if (wait.kind == Wait::Kind::kNccl) drop(nccl_waits_, NcclKey(wait.name, wait.attempt));
  return wait;
}

std::string Store::barrier_text(const Name& name) const {
  const Barrier& barrier = barriers_.at(name);
  std::vector<int> missing, gave_up;
  for (int rank = 0; rank < roster_.size(); ++rank) {
    if (barrier.waiting.count(rank) > 0) continue;
    (barrier.gave_up.count(rank) > 0 ? gave_up : missing).push_back(rank);
  }
  std::string out;
  if (!missing.empty()) out += "; missing: " + roster_.describe(missing, name.first);
  if (!gave_up.empty()) out += "; gave up before: " + roster_.describe(gave_up, name.first);
  return out;
}

std::string Store::timeout_text(const Wait& wait, Texts& texts) const {
  const std::string late = " within " + limit_text(std::chrono::milliseconds(wait.timeout_ms));
  const std::string name = in_quotes(wait.name.second);
  const int epoch = wait.asker.epoch;
  if (wait.kind == Wait::Kind::kNccl) {
    return "the NCCL id of communicator " + name + ", attempt " + std::to_string(wait.attempt) + ", did not come" +
           late + " from " + roster_.describe(wait.root, epoch);
  }
  if (wait.kind == Wait::Kind::kKey) {
    const auto [absent, is_new] = texts.absent.try_emplace(epoch);
    if (is_new) absent->second = roster_.describe(roster_.absent(epoch), epoch);
    return "key " + name + " was not set" + late + (absent->second.empty() ? "" : "; not there: " + absent->second);
  }
  const auto [state, is_new] = texts.barriers.try_emplace(wait.name);
  if (is_new) state->second = barrier_text(wait.name);
  return "barrier " + name + " was not complete" + late + state->second;
}

}  // namespace drun::rendezvous
