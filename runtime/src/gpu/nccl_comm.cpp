#include "runtime/src/gpu/nccl_comm.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "base/blocked_signals.h"
#include "runtime/src/algorithm/doubling.h"
#include "runtime/src/dtype.h"
#include "runtime/src/gpu/dots.h"
#include "runtime/src/gpu/hang_guard.h"
#include "runtime/src/gpu/kernel_module.h"

namespace drun::runtime::gpu {
namespace {

using std::chrono::milliseconds;

constexpr auto kSpin = std::chrono::microseconds(50), kPause = std::chrono::microseconds(200);
// Intervals of a wait for NCCL: between polls of the job and of failures that other ranks have published; and the wait
// for another rank's explanation of an error.
constexpr milliseconds kPollJob{20}, kPollOthers{500}, kExplain{1000};
constexpr milliseconds kAbortWithGraph{500}, kFinalizeTime{500};

double scale_of(const Operation& operation) { return operation.prescale * operation.postscale; }

// Writes a scale as an element of that type, f32 or f64.
void write_scale(double scale, drun_dtype dtype, char out[8]) {
  const auto narrowed = static_cast<float>(scale);
  if (dtype == DRUN_FLOAT64) {
    std::memcpy(out, &scale, sizeof scale);
  } else {
    std::memcpy(out, &narrowed, sizeof narrowed);
  }
}

// Inside a group, and before the connections exist, a call may be in progress.
bool is_begun(NcclResult result) { return result == kNcclSuccess || result == kNcclInProgress; }

}  // namespace

Outcome<std::unique_ptr<NcclComm>> NcclComm::create(const JobContext& job_context, const Group& group, const Nccl& nccl,
                                                    Device& device, const Operation& during) {
  const std::string what = "setup of NCCL for " + name_of(during);
  std::unique_ptr<NcclComm> result(new NcclComm(job_context, group, nccl, device));
  // The key is the same on all members and differs from those of other communicators: the local communicators of all
  // hosts have the same number, so the key has the first member's rank.
  const std::string key = own_key("nccl/" + std::to_string(group.comm) + "/" + std::to_string(group.ranks[0]));
  const auto left = std::chrono::duration_cast<milliseconds>(during.deadline() - Clock::now());
  const auto id = job_context.client->nccl_id(
      key, 0, group.ranks[0],
      [&]() -> Result<std::string> {
        NcclId made{};
        const auto error = nccl.GetUniqueId(&made);
        if (error == kNcclSuccess) return std::string(made.bytes, sizeof made.bytes);
        return drun::fail(Errc::kIo, std::string("ncclGetUniqueId: ") + nccl.GetErrorString(error));
      },
      std::max(left, milliseconds(1)));
  if (!id) {
    if (auto alive = check_alive(job_context, what); !alive) return tl::unexpected<Failure>(alive.error());
    return tl::unexpected<Failure>(from_error(id.error(), what));
  }
  NcclId bytes{};
  std::memcpy(bytes.bytes, id->data(), std::min(id->size(), sizeof bytes.bytes));
  ContextScope scope;
  if (const auto error = scope.enter(device.driver(), device.context()); error != kSuccess) {
    return driver_failure(device.driver(), what, "cuCtxPushCurrent", error);
  }
  NcclConfig config;
  NcclResult begun = kNcclSuccess;
  {
    const HangGuard guard(result->who(), "ncclCommInitRankConfig", longest(during));
    begun = nccl.CommInitRankConfig(&result->comm_, group.size(), bytes, group.own, &config);
  }
  Status ready = is_begun(begun) ? result->settle(during, "ncclCommInitRankConfig")
                                 : Status(result->failed(what, "ncclCommInitRankConfig", begun));
  if (ready) return result;
  result->publish(ready.error());
  result->abort();
  return tl::unexpected<Failure>(ready.error());
}

void NcclComm::publish(Failure& failure, const char* remedy) const {
  // For example, a driver that is too old for this NCCL. A failure of another rank already has its hint.
  if (failure.status == DRUN_ERROR_SYSTEM && failure.rank == job_context_.rank()) {
    failure.text +=
        std::string(" (hint: ") + remedy + "DRUN_GPU=0 on all ranks sends data of GPUs through the host, without NCCL)";
  }
  publish_failure(job_context_, failure);
}

milliseconds NcclComm::longest(const Operation& during) {
  const auto left = std::chrono::duration_cast<milliseconds>(during.deadline() - Clock::now());
  return std::max(left, milliseconds(0)) + kNcclEndTime;
}

// A rank alone in its part passes a color, too: with NCCL_SPLIT_NOCOLOR, NCCL (at least up to 2.30) writes to the null
// new communicator if the split fails.
Status NcclComm::split(const Group& part, const Operation& during, std::unique_ptr<NcclComm>& made) {
  constexpr const char* kFunction = "ncclCommSplit";
  const std::string what = "setup of NCCL for " + name_of(during);
  made.reset(new NcclComm(job_context_, part, nccl_, device_));
  made->has_kernels_ = has_kernels_;
  ContextScope scope;
  if (const auto error = scope.enter(device_.driver(), device_.context()); error != kSuccess) {
    return ours(driver_failure(device_.driver(), what, "cuCtxPushCurrent", error).value());
  }
  NcclResult begun = kNcclSuccess;
  {
    const HangGuard guard(who(), kFunction, longest(during));
    begun = nccl_.CommSplit(comm_, part.ranks[0], part.own, &made->comm_, nullptr);
  }
  Status ready = is_begun(begun) ? settle(during, kFunction) : Status(failed(what, kFunction, begun));
  if (ready && made->comm_ == nullptr) {
    ready = failure(DRUN_ERROR_SYSTEM, what + ": ncclCommSplit gave no communicator", job_context_.rank(),
                    job_context_.host_of(job_context_.rank()));
  }
  if (ready) ready = made->settle(during, kFunction);
  if (!ready) publish(ready.error(), "DRUN_NCCL_SPLIT=0 goes without this; ");
  return ready;
}

NcclComm::~NcclComm() { end(milliseconds(0)); }

std::vector<int> NcclComm::others() const {
  std::vector<int> others = group_.ranks;
  others.erase(std::remove(others.begin(), others.end(), job_context_.rank()), others.end());
  return others;
}

void NcclComm::close(const Pending& pending, int status) {
  for (const std::uint64_t number : pending.records) job_context_.recorder->end(number, status);
  for (const Event event : {pending.begin, pending.end}) {
    if (event != nullptr) device_.give_back(event);
  }
}

void NcclComm::forget_pending(int status) {
  for (const Pending& call : pending_) close(call, status);
  pending_.clear();
}

std::vector<int> NcclComm::host_mates() const {
  const auto& host_of = job_context_.client->welcome().host_index_of_rank;
  std::vector<int> mates = others();
  mates.erase(std::remove_if(mates.begin(), mates.end(),
                             [&](int rank) {
                               return host_of[static_cast<std::size_t>(rank)] !=
                                      host_of[static_cast<std::size_t>(job_context_.rank())];
                             }),
              mates.end());
  return mates;
}

std::vector<int> NcclComm::peers_of(const std::vector<const Operation*>& operations) const {
  std::set<int> peers;
  for (const Operation* operation : operations) {
    if (!is_of_two(*operation)) return {};
    peers.insert(group_.world_rank(operation->root));
  }
  return {peers.begin(), peers.end()};
}

NcclComm::Waiting NcclComm::waiting() const {
  if (pending_.empty()) return {};
  return {has_begun_ ? peers_of(pending_.front()) : std::vector<int>(), pending_.front().number};
}

// State of a thread that ends a communicator; it may outlive everything else.
struct NcclEnding {
  const Nccl* nccl;
  const Driver* driver;
  Context context;
  NcclHandle comm;
  std::vector<void*> registered;  // NCCL's handles of memory
  std::mutex mutex;
  std::condition_variable changed;
  bool is_over = false;
};

namespace {

void deregister_memory(const NcclEnding& it) {
  for (void* const handle : it.registered) it.nccl->CommDeregister(it.comm, handle);
}
void finalize_communicator(const NcclEnding& it) {
  deregister_memory(it);
  auto state = it.nccl->CommFinalize(it.comm);
  while (state == kNcclInProgress) {
    std::this_thread::sleep_for(kPause);
    if (it.nccl->CommGetAsyncError(it.comm, &state) != kNcclSuccess) break;
  }
}
void end_communicator(const NcclEnding& it) {
  finalize_communicator(it);
  it.nccl->CommDestroy(it.comm);
}
void abort_communicator(const NcclEnding& it) { it.nccl->CommAbort(it.comm); }

// Runs `what` in a new thread, and waits for it for at most `wait`.
void in_thread(std::shared_ptr<NcclEnding> it, void (*what)(const NcclEnding&), milliseconds wait) {
  try {
    const BlockedSignals blocked;
    std::thread([it, what] {
      ContextScope scope;
      if (scope.enter(*it->driver, it->context) == kSuccess) what(*it);
      const std::lock_guard<std::mutex> lock(it->mutex);
      it->is_over = true;
      it->changed.notify_all();
    }).detach();
  } catch (const std::system_error&) {
    return;  // no thread: leave the communicator behind
  }
  std::unique_lock<std::mutex> lock(it->mutex);
  it->changed.wait_for(lock, wait, [&] { return it->is_over; });
}

std::shared_ptr<NcclEnding> ending_of(const Nccl& nccl, const Device& device, NcclHandle comm,
                                      std::vector<void*> registered = {}) {
  auto it = std::make_shared<NcclEnding>();
  it->nccl = &nccl;
  it->driver = &device.driver();
  it->context = device.context();
  it->comm = comm;
  it->registered = std::move(registered);
  return it;
}

// Addresses at which registered memory begins: once for each communicator that has registered it.
class Addresses {
 public:
  void add(std::uintptr_t address) {
    const std::lock_guard<std::mutex> lock(mutex_);
    all_.insert(address);
  }
  void remove(std::uintptr_t address) {
    const std::lock_guard<std::mutex> lock(mutex_);
    all_.erase(all_.find(address));
  }
  bool has_one_within(std::uintptr_t begin, std::size_t n_bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto next = all_.lower_bound(begin);
    return next != all_.end() && *next - begin < n_bytes;
  }

 private:
  std::mutex mutex_;
  std::multiset<std::uintptr_t> all_;
};
// Never destroyed, because programs free memory until the process ends.
Addresses& registered_addresses() {
  static Addresses* const all = new Addresses;
  return *all;
}

}  // namespace

void NcclComm::abort() {
  if (comm_ == nullptr) return;
  forget_pending(DRUN_ERROR_ABORTED);
  const NcclHandle comm = std::exchange(comm_, nullptr);
  (void)take_registered();  // NCCL's abort deregisters them
  // NCCL first ends work in progress, and then waits for the end of the graph.
  if (has_graph_) return in_thread(ending_of(nccl_, device_, comm), abort_communicator, kAbortWithGraph);
  ContextScope scope;
  (void)scope.enter(device_.driver(), device_.context());
  const HangGuard guard(who(), "ncclCommAbort", kNcclEndTime);
  nccl_.CommAbort(comm);
}

void NcclComm::end(milliseconds wait) { leave_to_thread(end_communicator, wait); }

void NcclComm::leave_behind() { leave_to_thread(finalize_communicator, kFinalizeTime); }

void NcclComm::leave_to_thread(void (*what)(const NcclEnding&), milliseconds wait) {
  if (comm_ == nullptr) return;
  forget_pending(DRUN_OK);
  in_thread(ending_of(nccl_, device_, std::exchange(comm_, nullptr), take_registered()),
            has_graph_ ? deregister_memory : what, wait);
}

void NcclComm::forget() {
  forget_pending(DRUN_OK);
  comm_ = nullptr;
  (void)take_registered();
}

std::string NcclComm::register_memory(void* memory, std::size_t n_bytes) {
  if (comm_ == nullptr) return "NCCL is not used any more";
  if (nccl_.CommRegister == nullptr || nccl_.CommDeregister == nullptr) {
    return "NCCL " + nccl_version_text(nccl_.version) + " can't register memory";
  }
  const auto known = registered_.find(reinterpret_cast<std::uintptr_t>(memory));
  if (known != registered_.end() && known->second.n_bytes == n_bytes) return "";
  if (auto why_not = deregister(memory, 1); !why_not.empty()) return why_not;
  ContextScope scope;
  if (const auto error = scope.enter(device_.driver(), device_.context()); error != kSuccess) {
    return "cuCtxPushCurrent: " + device_.driver().name_of(error);
  }
  void* handle = nullptr;
  if (const auto error = nccl_.CommRegister(comm_, memory, n_bytes, &handle); error != kNcclSuccess) {
    return std::string("ncclCommRegister: ") + nccl_.GetErrorString(error);
  }
  if (handle == nullptr) return "";  // NCCL's environment disables registration
  registered_[reinterpret_cast<std::uintptr_t>(memory)] = {n_bytes, handle};
  registered_addresses().add(reinterpret_cast<std::uintptr_t>(memory));
  return "";
}

std::string NcclComm::deregister(const void* memory, std::size_t n_bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const auto first = registered_.lower_bound(begin), last = registered_.lower_bound(begin + n_bytes);
  if (first == last) return "";
  std::string why_not;
  ContextScope scope;
  if (const auto error = scope.enter(device_.driver(), device_.context()); error != kSuccess) {
    why_not = "cuCtxPushCurrent: " + device_.driver().name_of(error);  // the process is about to end
  }
  for (auto it = first; it != last; ++it) {
    registered_addresses().remove(it->first);
    if (!scope.is_entered()) continue;
    const HangGuard guard(who(), "ncclCommDeregister", job_context_.timeouts.op + kNcclEndTime);
    const auto error = nccl_.CommDeregister(comm_, it->second.handle);
    if (error != kNcclSuccess) why_not = std::string("ncclCommDeregister: ") + nccl_.GetErrorString(error);
  }
  registered_.erase(first, last);
  return why_not;
}

bool NcclComm::is_registered(const void* memory, std::size_t n_bytes) {
  return registered_addresses().has_one_within(reinterpret_cast<std::uintptr_t>(memory), n_bytes);
}

std::vector<void*> NcclComm::take_registered() {
  std::vector<void*> handles;
  for (const auto& [address, registered] : registered_) {
    registered_addresses().remove(address);
    handles.push_back(registered.handle);
  }
  registered_.clear();
  return handles;
}

tl::unexpected<Failure> NcclComm::failed(const std::string& during, const char* function, NcclResult result) {
  std::string text = during + ": " + function + ": " + nccl_.GetErrorString(result);
  const char* const more = comm_ != nullptr ? nccl_.GetLastError(comm_) : nullptr;
  if (more != nullptr && *more != '\0') text += std::string(" (") + more + ")";
  return failure(DRUN_ERROR_SYSTEM, text, job_context_.rank(), job_context_.host_of(job_context_.rank()));
}

tl::unexpected<Failure> NcclComm::explained(const Operation& operation, const char* function, NcclResult result) {
  if (auto cause = published_failure(job_context_, name_of(operation), kExplain)) {
    return tl::unexpected<Failure>(std::move(*cause));
  }
  auto failure = failed(describe(operation), function, result);
  if (result == kNcclRemoteError) {  // another rank's failure, of which NCCL does not know the rank
    failure.value().status = DRUN_ERROR_PEER;
    failure.value().rank = -1;
    failure.value().host.clear();
  }
  return failure;
}

Status NcclComm::settle(const Operation& operation, const char* function) {
  const auto began = Clock::now();
  auto looked = began, asked = began;
  for (;;) {
    NcclResult state = kNcclSuccess;
    const auto asking = nccl_.CommGetAsyncError(comm_, &state);
    if (asking != kNcclSuccess) return failed(name_of(operation), "ncclCommGetAsyncError", asking);
    if (state == kNcclSuccess) return {};
    if (state != kNcclInProgress) return explained(operation, function, state);
    const auto now = Clock::now();
    if (now - looked >= kPollJob) {
      looked = now;
      if (auto alive = check_alive(job_context_, name_of(operation)); !alive) return alive;
      if (call_deadline_.left(operation).count() <= 0) {
        const auto where = [function](int) {
          return std::string("in ") + function + ", which does not say for whom it waits";
        };
        return tl::unexpected<Failure>(timeout_failure(job_context_, group_, operation, others(), where));
      }
    }
    if (now - asked >= kPollOthers) {
      asked = now;
      if (auto cause = published_failure(job_context_, name_of(operation), milliseconds(1))) {
        return tl::unexpected<Failure>(std::move(*cause));
      }
    }
    if (now - began > kSpin) std::this_thread::sleep_for(kPause);
  }
}

std::uint64_t NcclComm::record(const Operation& operation) {
  const bool has_root = operation.root >= 0 && operation.root < group_.size();
  return job_context_.recorder->begin(operation, group_.world_rank(0),
                                      has_root ? group_.world_rank(operation.root) : -1, operation.queued);
}

// A call on a single stream that waits at once goes to that stream itself: ours would gain nothing, and two waits
// between streams are saved. Ours is for work that runs beside the user's stream, for calls of several streams
// together, for work in memory that calls share, and for a capture, whose calls it keeps in order. It also replaces
// cudaStreamPerThread, because NCCL has threads of its own.
Outcome<NcclComm::StreamPlan> NcclComm::begin_after(const std::vector<UserStream>& streams, const Operation& during,
                                                    bool needs_ours) {
  const Driver& driver = device_.driver();
  StreamPlan way{streams.front().stream, false, false};
  std::vector<Stream> all;
  for (const UserStream& one : streams) {
    way.is_ours = way.is_ours || needs_ours || one.later != nullptr || one.stream != streams.front().stream ||
                  one.stream == stream_of_thread();
    if (std::find(all.begin(), all.end(), one.stream) != all.end()) continue;
    all.push_back(one.stream);
    int capture = kCaptureNone;
    if (driver.stream_capture(one.stream, &capture) == kSuccess && capture != kCaptureNone) way.is_captured = true;
  }
  way.is_ours = way.is_ours || way.is_captured;
  if (way.is_ours) way.stream = device_.stream();
  for (std::size_t i = 0; way.is_ours && i < all.size(); ++i) {
    Event event = nullptr;
    auto error = device_.take_event(event);
    if (error != kSuccess) return driver_failed(during, "cuEventCreate", error);
    const char* function = "cuEventRecord";
    if ((error = driver.event_record(event, all[i])) == kSuccess) {
      function = "cuStreamWaitEvent";
      error = driver.stream_wait_event(way.stream, event, 0);
    }
    device_.give_back(event);  // the wait is for the work recorded so far
    if (error != kSuccess) return driver_failed(during, function, error);
  }
  if (way.is_captured && needs_ours) device_.keep_scratch();
  // In a capture no work can wait for an event from outside of it: the program must have waited for its earlier calls
  // when it launches a graph.
  if (const Event before = device_.last_call(); before != nullptr && !way.is_captured) {
    const auto error = driver.stream_wait_event(way.stream, before, 0);
    if (error != kSuccess) return driver_failed(during, "cuStreamWaitEvent", error);
  }
  return way;
}

Status NcclComm::end_before(Pending& pending, const std::vector<UserStream>& streams, const StreamPlan& way) {
  const Driver& driver = device_.driver();
  auto error = driver.event_record(pending.end, way.stream);
  if (error != kSuccess) return driver_failed(pending.operation, "cuEventRecord", error);
  for (std::size_t i = 0; way.is_ours && i < streams.size(); ++i) {
    if (streams[i].later != nullptr && !way.is_captured) {  // a capture must end with all streams joined
      if (auto ok = wait_later(streams[i], pending.operation); !ok) return ok;
      continue;
    }
    error = driver.stream_wait_event(streams[i].stream, pending.end, 0);
    if (error != kSuccess) return driver_failed(pending.operation, "cuStreamWaitEvent", error);
  }
  has_graph_ = has_graph_ || way.is_captured;
  if (way.is_captured) {  // it is part of a graph, and can't be polled
    close(pending, DRUN_OK);
    return {};
  }
  device_.set_last_call(pending.end);
  pending_.push_back(std::move(pending));
  return {};
}

// Uses an event of its own, because `pending`'s is reused.
Status NcclComm::wait_later(const UserStream& stream, const Operation& operation) {
  const Driver& driver = device_.driver();
  Event event = nullptr;
  auto error = driver.event_create(&event, kEventDisableTiming);
  if (error != kSuccess) return driver_failed(operation, "cuEventCreate", error);
  stream.later->set(driver, device_.context(), stream.stream, event);
  error = driver.event_record(event, device_.stream());
  if (error != kSuccess) return driver_failed(operation, "cuEventRecord", error);
  return {};
}

Status NcclComm::run(const std::vector<const Operation*>& operations, const std::vector<UserStream>& streams,
                     const Enqueue& enqueue, const std::function<Status()>& meanwhile) {
  const auto steps = [&](Stream ours) -> Status {
    const auto begun = enqueue(ours);
    if (!is_begun(begun)) return explained(*operations[0], "NCCL", begun);
    return {};
  };
  return run_steps(operations, streams, steps, false, meanwhile);
}

Status NcclComm::run_steps(const std::vector<const Operation*>& operations, const std::vector<UserStream>& streams,
                           const Steps& steps, bool needs_ours, const std::function<Status()>& meanwhile) {
  ContextScope scope;
  if (const auto error = scope.enter(device_.driver(), device_.context()); error != kSuccess) {
    return driver_failed(*operations[0], "cuCtxPushCurrent", error);
  }
  Pending pending{*operations[0], nullptr, nullptr, {}, peers_of(operations), ++n_calls_, job_context_.stopped()};
  if (job_context_.recorder) {
    for (const Operation* operation : operations) pending.records.push_back(record(*operation));
  }
  auto done = run_recorded(pending, streams, steps, needs_ours, meanwhile);
  if (!done) close(pending, done.error().status);
  return done;
}

Status NcclComm::run_recorded(Pending& pending, const std::vector<UserStream>& streams, const Steps& steps,
                              bool needs_ours, const std::function<Status()>& meanwhile) {
  const Operation& first = pending.operation;
  const auto way = begin_after(streams, first, needs_ours);
  if (!way) return tl::unexpected<Failure>(way.error());
  for (Event* event : {&pending.begin, &pending.end}) {
    const auto error = device_.take_event(*event);
    if (error != kSuccess) return driver_failed(first, "cuEventCreate", error);
  }
  const auto error = device_.driver().event_record(pending.begin, way->stream);
  if (error != kSuccess) return driver_failed(first, "cuEventRecord", error);
  if (auto ok = steps(way->stream); !ok) return ok;
  if (meanwhile) {
    if (auto ok = meanwhile(); !ok) return ok;
  }
  // The first calls make connections. No other work may be enqueued before these exist.
  if (auto ok = settle(first, "NCCL"); !ok) return ok;
  return end_before(pending, streams, *way);
}

Status NcclComm::ours(Failure failure) const {
  failure.rank = job_context_.rank();
  failure.host = job_context_.host_of(failure.rank);
  publish_failure(job_context_, failure);
  return tl::unexpected<Failure>(std::move(failure));
}

Outcome<bool> NcclComm::is_reached(Event event, const Operation& operation) {
  const auto state = device_.driver().event_query(event);
  if (state == kSuccess) return true;
  // While a stream is being captured the driver may not answer; at the end of the process it never does.
  if (state == kNotReady || state == kDeinitialized || is_about_capture(state)) return false;
  return tl::unexpected<Failure>(ours(driver_failed(operation, "cuEventQuery", state).value()).error());
}

Status NcclComm::poll() {
  if (comm_ == nullptr || pending_.empty()) return {};
  const Driver& driver = device_.driver();
  int mode = kCaptureModeRelaxed;  // so that our queries do not invalidate a capture
  driver.exchange_capture_mode(&mode);
  ContextScope scope;
  const bool is_there = scope.enter(driver, device_.context()) == kSuccess;
  Status result;
  const Operation first = pending_.front().operation;
  has_begun_ = false;
  while (is_there && result && !pending_.empty()) {
    Pending& next = pending_.front();
    auto over = is_reached(next.end, next.operation);
    if (!over) result = tl::unexpected<Failure>(over.error());
    if (!over || !*over) {
      auto begun = is_reached(next.begin, next.operation);
      has_begun_ = begun && *begun;
      break;
    }
    close(next, DRUN_OK);
    pending_.pop_front();
  }
  scope.leave();
  driver.exchange_capture_mode(&mode);
  if (!is_there) {  // the process is about to end, or the program has taken the GPU back
    forget();
    return {};
  }
  if (!result) return result;
  // Checks calls that have ended, too: an error may have ended them.
  NcclResult state = kNcclSuccess;
  if (nccl_.CommGetAsyncError(comm_, &state) == kNcclSuccess && !is_begun(state)) {
    auto failure = explained(pending_.empty() ? first : pending_.front().operation, "NCCL", state).value();
    publish_failure(job_context_, failure);
    return tl::unexpected<Failure>(std::move(failure));
  }
  if (pending_.empty()) {
    note_.done(job_context_);
    return {};
  }
  const Pending& front = pending_.front();
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
  return ours(own_gpu_timeout(waiting).value());
}

// Sums and averages can be scaled by one factor of their type, which is too imprecise for halves. The CPU path scales
// other reductions, and averages integers, which NCCL rounds differently.
bool NcclComm::can_reduce(const Operation& operation) {
  if (operation.op == DRUN_AVG && !is_float(operation.dtype)) return false;
  const bool adds = operation.op == DRUN_SUM || operation.op == DRUN_AVG;
  return scale_of(operation) == 1 || (adds && is_wide_float(operation.dtype));
}

template <typename Calls>
NcclResult NcclComm::grouped(const Calls& calls) {
  NcclResult result = nccl_.GroupStart();
  if (is_begun(result)) result = calls();
  const auto ended = nccl_.GroupEnd();
  return is_begun(result) ? ended : result;
}

NcclResult NcclComm::reduction_of(const Operation& operation, NcclRedOp& op, bool& is_made) {
  is_made = false;
  const double scale = scale_of(operation);
  switch (operation.op) {
    case DRUN_PROD:
      op = kNcclProd;
      return kNcclSuccess;
    case DRUN_MIN:
      op = kNcclMin;
      return kNcclSuccess;
    case DRUN_MAX:
      op = kNcclMax;
      return kNcclSuccess;
    default:
      break;
  }
  op = operation.op == DRUN_AVG ? kNcclAvg : kNcclSum;
  if (scale == 1) return kNcclSuccess;
  char scalar[8] = {};
  write_scale(operation.op == DRUN_AVG ? scale / group_.size() : scale, operation.dtype, scalar);
  const auto made =
      nccl_.RedOpCreatePreMulSum(&op, scalar, nccl_type_of(operation.dtype), kNcclScalarInHostMemory, comm_);
  is_made = made == kNcclSuccess;
  return made;
}

Status NcclComm::with_reduction(const std::vector<const Operation*>& operations, const std::vector<UserStream>& streams,
                                const std::function<NcclResult(std::size_t, NcclRedOp, Stream)>& enqueue) {
  return run(operations, streams, [&](Stream ours) {
    std::vector<NcclRedOp> made;
    const auto all = [&] {
      NcclResult result = kNcclSuccess;
      for (std::size_t i = 0; i < operations.size() && is_begun(result); ++i) {
        NcclRedOp op = kNcclSum;
        bool is_made = false;
        result = reduction_of(*operations[i], op, is_made);
        if (is_made) made.push_back(op);
        if (is_begun(result)) result = enqueue(i, op, ours);
      }
      return result;
    };
    const NcclResult result = operations.size() > 1 ? grouped(all) : all();
    for (const NcclRedOp op : made) nccl_.RedOpDestroy(op, comm_);
    return result;
  });
}

Status NcclComm::allreduce(const std::vector<Allreduce>& calls) {
  std::vector<const Operation*> operations;
  std::vector<UserStream> streams;
  for (const auto& call : calls) {
    operations.push_back(&call.operation);
    streams.push_back(call.stream);
  }
  return with_reduction(operations, streams, [&](std::size_t i, NcclRedOp op, Stream ours) {
    const Operation& o = calls[i].operation;
    return nccl_.AllReduce(calls[i].send, calls[i].recv, o.count, nccl_type_of(o.dtype), op, comm_, ours);
  });
}

// Does what adasum_allreduce() does on the host, with whole vectors. Each step of NCCL's is enqueued, connections
// included, before the kernels that follow it.
class NcclComm::AdasumSteps {
 public:
  AdasumSteps(NcclComm& comm, const Operation& operation, Stream ours, void* data)
      : comm_(comm), operation_(operation), during_(describe(operation)), ours_(ours), data_(data) {}

  Status begin(const void* send) {
    const Device& device = comm_.device_;
    const std::size_t n_bytes = operation_.count * size_of(operation_.dtype),
                      aligned = (n_bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
    DevicePointer scratch = 0;
    auto error = comm_.device_.take_scratch(aligned + dots_bytes(operation_.count), scratch);
    if (error != kSuccess) return comm_.driver_failed(operation_, "cuMemAlloc", error);
    theirs_ = scratch;
    dots_ = scratch + aligned;
    if (send != data_) {
      error = device.driver().copy_on_device(device_pointer(data_), device_pointer(send), n_bytes, ours_);
      if (error != kSuccess) return comm_.driver_failed(operation_, "cuMemcpyDtoDAsync", error);
    }
    return scale(operation_.prescale);
  }
  Status run() {
    const int rank = comm_.group_.own, size = comm_.group_.size(), power = power_below(size);
    if (rank >= power) {
      if (auto gave = move(data_, rank - power, nullptr, -1); !gave) return gave;
      return move(nullptr, -1, data_, rank - power);
    }
    const bool has_more = rank + power < size;
    if (has_more) {
      if (auto taken = move(nullptr, -1, reinterpret_cast<void*>(theirs_), rank + power); !taken) return taken;
      if (auto added = combine(true); !added) return added;
    }
    for (int distance = 1; distance < power; distance *= 2) {
      const int peer = rank ^ distance;
      if (auto moved = move(data_, peer, reinterpret_cast<void*>(theirs_), peer); !moved) return moved;
      if (auto added = combine(rank < peer); !added) return added;
    }
    return has_more ? move(data_, rank + power, nullptr, -1) : Status();
  }
  Status end() { return scale(operation_.postscale); }

 private:
  static constexpr std::size_t kScratchAlignment = 256;

  Status move(const void* send, int to, void* recv, int from) {
    const int dtype = nccl_type_of(operation_.dtype);
    const auto begun = comm_.grouped([&] {
      NcclResult result = kNcclSuccess;
      if (send != nullptr) result = comm_.nccl_.Send(send, operation_.count, dtype, to, comm_.comm_, ours_);
      if (recv != nullptr && is_begun(result)) {
        result = comm_.nccl_.Recv(recv, operation_.count, dtype, from, comm_.comm_, ours_);
      }
      return result;
    });
    if (!is_begun(begun)) return comm_.explained(operation_, "NCCL", begun);
    return comm_.settle(operation_, "NCCL");
  }
  Status launch(const std::string& kernel, const void* arguments, std::uint64_t n_parts) const {
    const Device& device = comm_.device_;
    auto module = KernelModule::of(device.driver(), device.context(), during_);
    if (!module) return tl::unexpected<Failure>(module.error());
    return (*module)->launch(kernel, arguments, n_parts, ours_, during_);
  }
  Status combine(bool lower) {
    const auto with = [&](const std::string& kernel, const void* arguments, std::uint64_t n_parts) {
      return launch(kernel, arguments, n_parts);
    };
    const DevicePointer ours = device_pointer(data_);
    const auto arguments = dots_arguments(lower ? ours : theirs_, lower ? theirs_ : ours, operation_.count, dots_);
    if (auto ok = launch_dots(arguments, operation_.dtype, with); !ok) return ok;
    return launch_adasum(arguments, ours, operation_.dtype, with);
  }
  Status scale(double factor) const {
    if (factor == 1) return {};
    const ElementArguments arguments{device_pointer(data_), 0, operation_.count, factor};
    return launch(std::string("drun_scale_") + name_of(operation_.dtype), &arguments, parts_of(operation_.count));
  }

  NcclComm& comm_;
  const Operation& operation_;
  std::string during_;
  Stream ours_;
  void* data_;
  DevicePointer theirs_ = 0, dots_ = 0;
};

Status NcclComm::adasum(const Operation& operation, const UserStream& stream, const void* send, void* recv) {
  const auto all = [&](Stream ours) -> Status {
    AdasumSteps steps(*this, operation, ours, recv);
    if (auto ok = steps.begin(send); !ok) return ok;
    if (auto ok = steps.run(); !ok) return ok;
    return steps.end();
  };
  return run_steps({&operation}, {stream}, all, true);  // calls share scratch memory
}

Status NcclComm::reduce(const Operation& operation, const UserStream& stream, const void* send, void* recv) {
  return with_reduction({&operation}, {stream}, [&](std::size_t, NcclRedOp op, Stream ours) {
    return nccl_.Reduce(send, recv, operation.count, nccl_type_of(operation.dtype), op, operation.root, comm_, ours);
  });
}

Status NcclComm::reduce_scatter(const Operation& operation, const UserStream& stream, const void* send, void* recv) {
  return with_reduction({&operation}, {stream}, [&](std::size_t, NcclRedOp op, Stream ours) {
    return nccl_.ReduceScatter(send, recv, operation.count, nccl_type_of(operation.dtype), op, comm_, ours);
  });
}

Status NcclComm::broadcast(const Operation& operation, const UserStream& stream, void* data) {
  return run(operation, stream, [&](Stream ours) {
    return nccl_.Broadcast(data, data, operation.count, nccl_type_of(operation.dtype), operation.root, comm_, ours);
  });
}

Status NcclComm::allgather(const Operation& operation, const UserStream& stream, const void* send, void* recv) {
  return run(operation, stream, [&](Stream ours) {
    return nccl_.AllGather(send, recv, operation.count, nccl_type_of(operation.dtype), comm_, ours);
  });
}

Status NcclComm::allgatherv(const Operation& operation, const UserStream& stream, const void* send, void* recv,
                            const std::vector<Block>& blocks) {
  const auto own = static_cast<std::size_t>(group_.own);
  std::vector<Block> sent(blocks.size(), {0, blocks[own].n_bytes});
  return alltoall(operation, stream, send, sent, recv, blocks);
}

Status NcclComm::gather(const Operation& operation, const UserStream& stream, const void* send, void* recv) {
  const std::size_t n_bytes = operation.count * size_of(operation.dtype),
                    size = static_cast<std::size_t>(group_.size());
  std::vector<Block> sent(size), received(size);
  sent[static_cast<std::size_t>(operation.root)] = {0, n_bytes};
  if (operation.root == group_.own) received = equal_blocks(size, n_bytes);
  return alltoall(operation, stream, send, sent, recv, received);
}

Status NcclComm::scatter(const Operation& operation, const UserStream& stream, const void* send, void* recv) {
  const std::size_t n_bytes = operation.count * size_of(operation.dtype),
                    size = static_cast<std::size_t>(group_.size());
  std::vector<Block> sent(size), received(size);
  if (operation.root == group_.own) sent = equal_blocks(size, n_bytes);
  received[static_cast<std::size_t>(operation.root)] = {0, n_bytes};
  return alltoall(operation, stream, send, sent, recv, received);
}

// Includes this rank's own block, which NCCL copies. A block that is in place already is skipped.
Status NcclComm::alltoall(const Operation& operation, const UserStream& stream, const void* send,
                          const std::vector<Block>& send_blocks, void* recv, const std::vector<Block>& recv_blocks) {
  const int bytes = nccl_type_of(DRUN_UINT8);
  const auto all = [&](Stream ours) {
    NcclResult result = kNcclSuccess;
    for (int peer = 0; peer < group_.size() && is_begun(result); ++peer) {
      const Block from = send_blocks[static_cast<std::size_t>(peer)], to = recv_blocks[static_cast<std::size_t>(peer)];
      const bool in_place = peer == group_.own && from.n_bytes > 0 && at(send, from.offset) == at(recv, to.offset);
      if (in_place) continue;
      if (from.n_bytes > 0) result = nccl_.Send(at(send, from.offset), from.n_bytes, bytes, peer, comm_, ours);
      if (to.n_bytes > 0 && is_begun(result)) {
        result = nccl_.Recv(at(recv, to.offset), to.n_bytes, bytes, peer, comm_, ours);
      }
    }
    return result;
  };
  return run(operation, stream, [&](Stream ours) { return grouped([&] { return all(ours); }); });
}

Status NcclComm::transfer(const std::vector<Transfer>& transfers, const std::vector<UserStream>& streams,
                          const std::function<Status()>& meanwhile) {
  std::vector<const Operation*> operations;
  for (const auto& transfer : transfers) operations.push_back(&transfer.operation);
  const auto all = [&](Stream ours) {
    NcclResult result = kNcclSuccess;
    for (const auto& [operation, data] : transfers) {
      const int dtype = nccl_type_of(operation.dtype);
      if (!is_begun(result)) break;
      result = operation.kind == OpKind::kSend ? nccl_.Send(data, operation.count, dtype, operation.root, comm_, ours)
                                               : nccl_.Recv(data, operation.count, dtype, operation.root, comm_, ours);
    }
    return result;
  };
  return run(
      operations, streams, [&](Stream ours) { return grouped([&] { return all(ours); }); }, meanwhile);
}

}  // namespace drun::runtime::gpu
