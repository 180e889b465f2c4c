#include "launcher/run/rank_table.h"

#include <algorithm>
#include <utility>

namespace drun::launcher {

void RankTable::place(const Placement& placement, std::vector<std::string> host_names) {
  hosts_ = std::move(host_names);
  ranks_.assign(placement.ranks.size(), {});
  for (const auto& place : placement.ranks) {
    auto& entry = ranks_[static_cast<std::size_t>(place.rank)];
    entry.rank = place.rank;
    entry.local_rank = place.local_rank;
    entry.host = place.host;
  }
}

std::string RankTable::worker_name(int rank) const {
  std::string out = "rank " + std::to_string(rank) + " on " + host_name(rank);
  if (at(rank).pid > 0) out += " (pid " + std::to_string(at(rank).pid) + ")";
  return out;
}

std::size_t RankTable::n_running() const {
  return static_cast<std::size_t>(std::count_if(begin(), end(), [](const auto& r) { return !r.exited; }));
}

std::size_t RankTable::n_unanswered() const {
  return static_cast<std::size_t>(std::count_if(begin(), end(), [](const auto& r) { return !r.answered; }));
}

std::size_t RankTable::n_unanswered(int host) const {
  return static_cast<std::size_t>(
      std::count_if(begin(), end(), [host](const auto& r) { return r.host == host && !r.answered; }));
}

bool RankTable::all_over(int host) const {
  return std::all_of(begin(), end(), [host](const auto& r) { return r.host != host || r.over; });
}

void RankTable::started(const control::Started& message, std::int64_t now_ns) {
  RankEntry* const entry = find(message.rank);
  if (entry == nullptr) return;
  entry->answered = true;
  entry->started_ns = now_ns;
  if (message.error == 0) entry->pid = message.pid;
}

void RankTable::joined(int rank) {
  RankEntry* const entry = rank < 0 ? nullptr : find(static_cast<std::uint64_t>(rank));
  if (entry == nullptr) return;
  // A program of libdrun begins in the worker: complaints of an earlier one say nothing about how this one ends.
  entry->complaint.clear();
  if (!entry->joined) ++n_joined_;
  entry->joined = true;
}

void RankTable::complained(int rank, const std::string& text) {
  RankEntry* const entry = rank < 0 ? nullptr : find(static_cast<std::uint64_t>(rank));
  if (entry != nullptr && entry->complaint.empty()) entry->complaint = text;
}

void RankTable::wrote(const control::Output& message) {
  if (RankEntry* const entry = find(message.rank)) entry->last_lines.push(message.stream, message.bytes);
}

void RankTable::output_ended(int rank) {
  RankEntry* const entry = rank < 0 ? nullptr : find(static_cast<std::uint64_t>(rank));
  if (entry != nullptr) --entry->open_streams;
}

void RankTable::exited(const control::Exited& message, std::int64_t now_ns) {
  RankEntry* const entry = find(message.rank);
  if (entry == nullptr) return;
  entry->exited = true;
  entry->wait_status = message.wait_status;
  entry->ended_by_drun = message.ended_by_drun;
  entry->seconds = static_cast<double>(now_ns - entry->started_ns) * 1e-9;
  entry->ended_ns = message.time_ns;
}

bool RankTable::set_over(int rank) {
  RankEntry* const entry = rank < 0 ? nullptr : find(static_cast<std::uint64_t>(rank));
  if (entry == nullptr || entry->over) return false;
  entry->exited = entry->over = true;
  ++n_over_;
  return true;
}

}  // namespace drun::launcher
