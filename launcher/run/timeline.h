// --timeline F: every collective of every rank on drun's clock, as Chrome-trace JSON. docs/recorder.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/asio.h"
#include "base/error.h"
#include "control/messages.h"
#include "launcher/connect/agent_channel.h"
#include "launcher/report/clock_track.h"
#include "launcher/run/rank_table.h"

namespace drun::launcher {

// The calls of a job, and the text that is made from them. Pure.
class TimelineCalls {
 public:
  // `ranks` outlives this; a call that has no end ends with its rank. Times in the text are relative to `begin_ns`, on
  // drun's clock.
  void expect(const RankTable& ranks, std::int64_t begin_ns);
  // The rank of a message may be invalid.
  void take(const control::Timeline& message);
  ClockTrack& clock(std::size_t host) { return clocks_[host]; }
  std::uint64_t n_calls() const { return n_calls_; }
  std::uint64_t n_lost() const;
  // Writes the text in pieces to `sink`.
  template <typename Sink>  // bool(std::string_view): false ends it
  bool write(const std::string& job_id, Sink sink) const {
    std::string piece = head(job_id);
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      for (const auto& call : ranks_[rank].calls) {
        piece += event(rank, call);
        if (piece.size() < kPiece) continue;
        if (!sink(piece)) return false;
        piece.clear();
      }
    }
    return sink(piece + "\n]}\n");
  }

  static constexpr std::uint64_t kMaxCalls = 2'000'000;  // Perfetto has trouble with more; further calls are lost

 private:
  static constexpr std::size_t kPiece = 1u << 20;
  struct Call {
    std::uint64_t seq = 0, count = 0;
    std::int64_t started_ns = 0, ended_ns = 0;  // by the host's clock
    std::uint32_t comm = 0, group = 0, queued_us = 0, name = 0;
    std::int32_t root = 0;
    std::uint8_t kind = 0, dtype = 0, op = 0;
    std::int8_t status = 0;
  };
  struct Rank {
    std::vector<Call> calls;
    std::uint64_t n_lost = 0;
  };
  std::string head(const std::string& job_id) const;
  std::string event(std::size_t rank, const Call& call) const;
  double micros(int host, std::int64_t host_ns) const;

  const RankTable* table_ = nullptr;
  std::vector<ClockTrack> clocks_;  // by host
  std::vector<Rank> ranks_;         // by rank
  std::map<std::string, std::uint32_t> name_numbers_;
  std::vector<std::string> names_;  // as JSON; "" = none
  std::int64_t begin_ns_ = 0;
  std::uint64_t n_calls_ = 0;
};

// Collects the calls and writes the file. Owned by the job; one thread. Before open() every call does nothing.
class Timeline {
 public:
  explicit Timeline(asio::io_context& io) : changed_(io.get_executor()) {}
  // The timeline is to be written to `path`. Makes a new file beside it and removes it again: a path that can't be
  // written fails before the job begins, and a drun that is killed leaves nothing.
  Result<void> open(const std::string& path);
  bool is_open() const { return !path_.empty(); }
  void expect(const std::vector<AgentChannel*>& hosts, const RankTable& ranks, std::int64_t begin_ns);
  void take(const AgentChannel& host, const control::Timeline& message);
  void host_lost() { changed_.notify(); }
  // Waits until every live host has reported that nothing more comes.
  Task<void> wait(Deadline deadline);
  Result<void> write(const std::string& job_id);
  std::uint64_t n_calls() const { return calls_.n_calls(); }
  std::uint64_t n_lost() const { return calls_.n_lost(); }

 private:
  struct HostEnd {
    const AgentChannel* agent = nullptr;
    bool ended = false;
  };
  bool all_ended() const;

  TimelineCalls calls_;
  std::vector<HostEnd> hosts_;
  Event changed_;
  std::string path_;
};

}  // namespace drun::launcher
