#include "runtime/src/gpu/nccl_calls.h"

#include <set>
#include <utility>

namespace drun::runtime::gpu {

NcclCall NcclCalls::begin(const std::vector<const Operation*>& operations) {
  NcclCall call{*operations[0], nullptr, nullptr, {}, peers_of(operations), ++n_calls_, job_context_.stopped()};
  if (job_context_.recorder) {
    for (const Operation* operation : operations) call.records.push_back(record(*operation));
  }
  return call;
}

DriverResult NcclCalls::take_events(NcclCall& call) {
  if (!device_.has_event()) close_oldest();
  for (Event* event : {&call.begin, &call.end}) {
    if (const auto error = device_.take_event(*event); error != kSuccess) return error;
  }
  return kSuccess;
}

void NcclCalls::close(const NcclCall& call, int status) {
  for (const std::uint64_t number : call.records) job_context_.recorder->end(number, status);
  for (const Event event : {call.begin, call.end}) {
    if (event != nullptr) device_.give_back(event);
  }
}

void NcclCalls::close_first() {
  close(under_way_.front(), DRUN_OK);
  under_way_.pop_front();
  has_begun_ = false;
  look_at_ = kClosedTogether;
}

// Calls end in the order of their numbers. Whatever is wrong with an event, poll_events() says it.
void NcclCalls::close_oldest() {
  if (under_way_.size() < look_at_) return;
  const Driver& driver = device_.driver();
  int mode = kCaptureModeRelaxed;  // so that our query does not invalidate a capture
  driver.exchange_capture_mode(&mode);
  const auto state = driver.event_query(under_way_[kClosedTogether - 1].end);
  driver.exchange_capture_mode(&mode);
  look_at_ = under_way_.size() + kClosedTogether;
  for (std::size_t i = 0; state == kSuccess && i < kClosedTogether; ++i) close_first();
}

void NcclCalls::forget(int status) {
  for (const NcclCall& call : under_way_) close(call, status);
  under_way_.clear();
}

std::vector<int> NcclCalls::peers_of(const std::vector<const Operation*>& operations) const {
  std::set<int> peers;
  for (const Operation* operation : operations) {
    if (!is_of_two(*operation)) return {};
    peers.insert(group_.world_rank(operation->root));
  }
  return {peers.begin(), peers.end()};
}

NcclCalls::Waiting NcclCalls::waiting() const {
  if (under_way_.empty()) return {};
  return {has_begun_ ? peers_of(under_way_.front()) : std::vector<int>(), under_way_.front().number};
}

std::uint64_t NcclCalls::record(const Operation& operation) {
  const bool has_root = operation.root >= 0 && operation.root < group_.size();
  return job_context_.recorder->begin(operation, group_.world_rank(0),
                                      has_root ? group_.world_rank(operation.root) : -1, operation.queued);
}

Outcome<bool> NcclCalls::is_reached(Event event, const Operation& operation) {
  DriverResult state = kSuccess;
  {
    const CallWatch::Call watched(watch_, operation, "cuEventQuery");
    state = device_.driver().event_query(event);
  }
  if (state == kSuccess) return true;
  // While a stream is being captured the driver may not answer; at the end of the process it never does.
  if (state == kNotReady || state == kDeinitialized || is_about_capture(state)) return false;
  return publish_own_failure(job_context_, driver_failure(device_.driver(), operation, "cuEventQuery", state).value());
}

Outcome<bool> NcclCalls::poll_events() {
  if (under_way_.empty()) return true;
  const Driver& driver = device_.driver();
  int mode = kCaptureModeRelaxed;  // so that our queries do not invalidate a capture
  driver.exchange_capture_mode(&mode);
  ContextScope scope;
  const bool is_there = scope.enter(driver, device_.context()) == kSuccess;
  Status result;
  has_begun_ = false;
  while (is_there && result && !under_way_.empty()) {
    NcclCall& next = under_way_.front();
    auto over = is_reached(next.end, next.operation);
    if (!over) result = tl::unexpected<Failure>(over.error());
    if (!over || !*over) {
      auto begun = is_reached(next.begin, next.operation);
      has_begun_ = begun && *begun;
      break;
    }
    close_first();
  }
  scope.leave();
  driver.exchange_capture_mode(&mode);
  if (!is_there) return false;
  if (!result) return tl::unexpected<Failure>(result.error());
  return true;
}

Status NcclCalls::check_deadline() {
  if (under_way_.empty()) {
    note_.done(job_context_);
    return {};
  }
  const NcclCall& front = under_way_.front();
  const Operation& waiting = front.operation;
  // A rank that waits for its own GPU waits for no other rank, and publishes no note.
  const bool waits_for_others = has_begun_ && group_.size() > 1;
  if (waits_for_others) {
    note_.waiting(job_context_, group_, waiting, [&] { return peers_of(front); });
  } else {
    note_.done(job_context_);
  }
  if (Clock::now() <= waiting.deadline() + (job_context_.stopped() - front.stopped)) return {};
  if (waits_for_others) {
    return tl::unexpected<Failure>(timeout_failure(job_context_, group_, waiting, peers_of(front)));
  }
  return publish_own_failure(job_context_, own_gpu_timeout(waiting).value());
}

}  // namespace drun::runtime::gpu
