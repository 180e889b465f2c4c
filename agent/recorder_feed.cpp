#include "agent/recorder_feed.h"

#include <algorithm>
#include <utility>

namespace drun::agent {

using control::Type;
using std::chrono::milliseconds;

namespace {
constexpr std::uint32_t kMinEntries = 16, kMaxEntries = 1u << 17;  // of a flight recorder
constexpr std::size_t kMaxNewCalls = 4096;                         // calls in a frame of the timeline
constexpr std::size_t kMaxBulk = 8u << 20;                         // queued bytes above which the timeline pauses
}  // namespace

RecorderFeed::RecorderFeed(const asio::any_io_executor& executor, control::FrameQueue& to_drun,
                           const WorkerGroup& workers)
    : to_drun_(to_drun), workers_(workers), tasks_(executor), wake_(executor) {}

void RecorderFeed::configure(const control::Record& settings) {
  if (!workers_.workers().empty()) return;
  recorders_.set_entries(std::clamp(settings.n_entries, kMinEntries, kMaxEntries));
  interval_ = milliseconds(settings.timeline_ms);
  if (interval_ > milliseconds(0)) tasks_.spawn(send_timeline());
}

void RecorderFeed::send_activity() {
  control::Activity m;
  for (const auto& [rank, worker] : workers_.workers()) {
    if (auto activity = recorders_.activity_of(rank)) m.ranks.push_back(std::move(*activity));
  }
  to_drun_.push(Type::kActivity, control::encode(m));
}

void RecorderFeed::send_last(std::uint32_t rank) {
  if (auto activity = recorders_.activity_of(rank)) {
    control::Activity m;
    m.ranks.push_back(std::move(*activity));
    to_drun_.push(Type::kActivity, control::encode(m));
  }
  if (interval_ > milliseconds(0)) send_new_calls_of(rank, true);
}

void RecorderFeed::send_end() {
  if (interval_ == milliseconds(0)) return;
  control::Timeline last;
  last.rank = control::Timeline::kEnd;
  to_drun_.push_bulk(Type::kTimeline, control::encode(last));
}

Task<void> RecorderFeed::send_timeline() {
  while (!is_stopped_ && !to_drun_.is_closed()) {
    // While much is queued, new calls stay in the recorders, which overwrite the oldest.
    if (to_drun_.bulk_bytes() < kMaxBulk) {
      for (const auto& [rank, worker] : workers_.workers()) {
        if (worker.running) send_new_calls_of(rank, false);
      }
    }
    co_await wake_.wait_until(Clock::now() + interval_);
  }
}

void RecorderFeed::send_new_calls_of(std::uint32_t rank, bool all) {
  for (std::size_t n_sent = 0; n_sent <= kMaxEntries; n_sent += kMaxNewCalls) {  // bounded, whatever its counter says
    const control::Timeline m = recorders_.new_calls_of(rank, kMaxNewCalls, all);
    if (m.calls.empty() && m.n_lost == 0) break;
    to_drun_.push_bulk(Type::kTimeline, control::encode(m));
    if (m.calls.size() < kMaxNewCalls) break;
  }
}

void RecorderFeed::stop() {
  is_stopped_ = true;
  wake_.notify();
}

}  // namespace drun::agent
