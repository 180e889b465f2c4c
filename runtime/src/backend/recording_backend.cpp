#include "runtime/src/backend/recording_backend.h"

#include <algorithm>
#include <utility>

namespace drun::runtime {

namespace {

class RecordingBackend final : public Backend, private CallClock::Listener {
 public:
  RecordingBackend(std::unique_ptr<Backend> inner, std::shared_ptr<Recorder> recorder, Group group)
      : inner_(std::move(inner)),
        recorder_(std::move(recorder)),
        group_(std::move(group)),
        size_(static_cast<std::size_t>(group_.size())) {}

  Status allreduce(const Operation& operation, const Span& data) override {
    return piece(operation, data.count, 1, [&] { return inner_->allreduce(operation, data); });
  }
  Status allreduce_from(const Operation& operation, const char* from, const Span& data) override {
    return piece(operation, data.count, 1, [&] { return inner_->allreduce_from(operation, from, data); });
  }
  Status adasum(const Operation& operation, const Span& data) override {
    return piece(operation, data.count, 1, [&] { return inner_->adasum(operation, data); });
  }
  Status reduce(const Operation& operation, const Span& data) override {
    return piece(operation, data.count, 1, [&] { return inner_->reduce(operation, data); });
  }
  Status reduce_scatter(const Operation& operation, const Span& data) override {
    return piece(operation, data.count, size_, [&] { return inner_->reduce_scatter(operation, data); });
  }
  Status broadcast(const Operation& operation, void* data, std::size_t n_bytes) override {
    return whole(operation, [&] { return inner_->broadcast(operation, data, n_bytes); });
  }
  Status allgather(const Operation& operation, void* data, const std::vector<Block>& blocks) override {
    return whole(operation, [&] { return inner_->allgather(operation, data, blocks); });
  }
  Status gather(const Operation& operation, const void* send, void* recv) override {
    return whole(operation, [&] { return inner_->gather(operation, send, recv); });
  }
  Status scatter(const Operation& operation, const void* send, void* recv) override {
    return whole(operation, [&] { return inner_->scatter(operation, send, recv); });
  }
  Status alltoall(const Operation& operation, const void* send, const std::vector<Block>& send_blocks, void* recv,
                  const std::vector<Block>& recv_blocks) override {
    return whole(operation, [&] { return inner_->alltoall(operation, send, send_blocks, recv, recv_blocks); });
  }
  Status transfer(const std::vector<Transfer>& transfers) override {
    for (const Transfer& one : transfers) begin(one.operation);
    const Status status = inner_->transfer(transfers);
    end(status);
    return status;
  }
  Status barrier(const Operation& operation) override {
    return whole(operation, [&] { return inner_->barrier(operation); });
  }
  bool asks_for_time() const override { return inner_->asks_for_time(); }
  bool has_closed(int member) const override { return inner_->has_closed(member); }
  // Also ends calls that an exception interrupted.
  void close() override {
    end_at(monotonic_ns(), DRUN_ERROR_SYSTEM);
    inner_->close();
  }

 private:
  // A reduction that comes in parts is recorded from the first part to the end of the last, including the time between
  // them.
  template <typename F>
  Status piece(const Operation& operation, std::size_t n_now, std::size_t n_each, F f) {
    if (n_left_ == 0) {
      begin_when_asked(operation);
      n_left_ = operation.count * n_each;
    }
    n_left_ -= std::min(n_left_, n_now);
    const Status status = f();
    if (!status || n_left_ == 0) end(operation, status);
    return status;
  }
  template <typename F>
  Status whole(const Operation& operation, F f) {
    begin_when_asked(operation);
    const Status status = f();
    end(operation, status);
    return status;
  }
  // If the backend reads the clock itself, its own contribution is under way by the time the call is recorded.
  void begin_when_asked(const Operation& operation) {
    if (operation.clock.has_begun() || !inner_->asks_for_time()) return begin(operation);
    asks_ = &operation;
    operation.clock.tell(this);
  }
  void call_began() override { begin(*asks_); }
  void begin(const Operation& operation) {
    const bool has_root = operation.root >= 0 && operation.root < group_.size();
    open_.push_back(recorder_->begin(operation, group_.world_rank(0), has_root ? group_.world_rank(operation.root) : -1,
                                     operation.queued));
  }
  void end(const Status& status) { end_at(monotonic_ns(), status ? DRUN_OK : status.error().status); }
  void end(const Operation& operation, const Status& status) {
    const CallClock& clock = operation.clock;
    const std::chrono::nanoseconds began = clock.began().time_since_epoch();  // reads the clock now if nothing has yet
    // A clock that was read before, for another reason, says nothing about this call.
    const bool is_short = clock.is_short() && asks_ == &operation;
    end_at(is_short ? began.count() : monotonic_ns(), status ? DRUN_OK : status.error().status);
  }
  void end_at(std::int64_t ended_ns, int status) {
    n_left_ = 0;
    asks_ = nullptr;
    for (const std::uint64_t number : open_) recorder_->end(number, status, ended_ns);
    open_.clear();
  }

  std::unique_ptr<Backend> inner_;
  std::shared_ptr<Recorder> recorder_;
  Group group_;
  std::size_t size_;
  std::vector<std::uint64_t> open_;  // calls under way: one, or sends and receives that were begun together
  const Operation* asks_ = nullptr;  // the call under way, if its backend reads the clock itself
  std::size_t n_left_ = 0;           // elements of the call that are still to come
};

}  // namespace

std::unique_ptr<Backend> make_recording_backend(std::unique_ptr<Backend> inner, std::shared_ptr<Recorder> recorder,
                                                Group group) {
  if (!recorder || !inner) return inner;
  return std::make_unique<RecordingBackend>(std::move(inner), std::move(recorder), std::move(group));
}

}  // namespace drun::runtime
