#include "launcher/report/first_failure.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "launcher/report/same_failure.h"
#include "launcher/report/signal_text.h"

namespace drun::launcher {

namespace {

// Messages of NCCL (2.4 to 2.27), Gloo, torch's TCPStore and libdrun about a lost peer.
constexpr std::array<std::string_view, 10> kPeerWentAway = {
    "ncclRemoteError",
    "remote process exited or there was a network error",
    "Connection closed by remote peer",
    "Connection closed by peer",
    "Connection reset by peer",
    "Connection was likely closed",
    "Socket Timeout",
    "closed its connection during",
    "failed to recv, got 0 bytes",
    " was lost: ",  // libdrun's, after an ABORT, as those of names_an_end()
};

// libdrun's message after an ABORT: "rank 1 on node1 (pid 53): killed by SIGSEGV".
bool names_an_end(std::string_view line) {
  constexpr std::string_view kAfterName = "): ";
  for (const auto cause : {kKilledBy, kExitedWithStatus}) {
    if (line.find(std::string(kAfterName) + std::string(cause)) != std::string_view::npos) return true;
  }
  return false;
}

enum class Evidence { kOwn, kReportsPeerLoss, kAfterStop };

Evidence evidence(const JobFailure& f, std::int64_t stop_ns) {
  if (f.when.earliest_ns > stop_ns) return Evidence::kAfterStop;
  // An uncaught exception about a lost peer ends in SIGABRT; any other signal is the worker's own.
  const bool own_signal = f.signal != 0 && f.signal != SIGABRT;
  if (f.rank < 0 || own_signal || !f.out_of_memory.empty()) return Evidence::kOwn;
  return f.complaint.empty() && !reports_peer_loss(f.last_lines) ? Evidence::kOwn : Evidence::kReportsPeerLoss;
}

// Two children that have both ended are reaped in the order of their start, not of their end.
constexpr std::int64_t kReapNs = 1'000'000;

bool can_not_be_told_apart(const JobFailure& a, const JobFailure& b) {
  if (a.host == b.host) return std::abs(a.when.middle_ns() - b.when.middle_ns()) < kReapNs;  // one clock
  return a.when.earliest_ns <= b.when.latest_ns && b.when.earliest_ns <= a.when.latest_ns;
}

std::string words_of(const JobFailure& f) {
  if (!f.own_error.empty()) return f.own_error;
  return f.complaint.empty() ? telling_line(f.last_lines) : f.complaint;
}

}  // namespace

std::string JobFailure::name() const {
  if (rank < 0) return "host " + host;
  std::string out = "rank " + std::to_string(rank) + " on " + host;
  if (pid > 0) out += " (pid " + std::to_string(pid) + ")";
  return out;
}

std::string JobFailure::sentence() const {
  return name() + (std::string_view(what).starts_with(kKilledBy) ? " was " : " ") + what;
}

FirstFailure find_first_failure(std::vector<JobFailure> failures, std::int64_t stop_ns) {
  const auto order = [&](const JobFailure& a, const JobFailure& b) {
    const auto evidence_a = evidence(a, stop_ns), evidence_b = evidence(b, stop_ns);
    if (evidence_a != evidence_b) return evidence_a < evidence_b;
    return a.when.middle_ns() < b.when.middle_ns();
  };
  std::stable_sort(failures.begin(), failures.end(), order);
  FirstFailure out;
  const JobFailure champion = failures.front();
  const Evidence best = evidence(champion, stop_ns);
  for (auto& f : failures) {
    const bool is_champion = &f == &failures.front();
    if (is_champion || (evidence(f, stop_ns) == best && can_not_be_told_apart(champion, f))) {
      const auto error_ns = std::max(champion.when.latest_ns - champion.when.middle_ns(),  //
                                     f.when.latest_ns - f.when.middle_ns());
      out.uncertainty_s = std::max(out.uncertainty_s, static_cast<double>(error_ns) * 1e-9);
      out.first.push_back(std::move(f));
    } else {
      out.consequences.push_back(std::move(f));
    }
  }
  for (const auto& f : out.consequences) {
    const std::string text = words_of(f);
    if (f.rank < 0 || text.empty()) continue;
    const auto is_same = [&](const JobFailure& first) { return is_same_failure(first, f); };
    if (std::any_of(out.first.begin(), out.first.end(), is_same)) continue;
    auto same = std::find_if(out.said.begin(), out.said.end(), [&](const Said& s) { return s.text == text; });
    if (same == out.said.end()) same = out.said.insert(same, Said{{}, text});
    same->ranks.push_back(f.rank);
  }
  for (auto& s : out.said) std::sort(s.ranks.begin(), s.ranks.end());
  return out;
}

bool reports_peer_loss(const std::vector<std::string>& last_lines) {
  return std::any_of(last_lines.begin(), last_lines.end(), [](const std::string& line) {
    return names_an_end(line) || std::any_of(kPeerWentAway.begin(), kPeerWentAway.end(), [&](std::string_view words) {
             return line.find(words) != std::string::npos;
           });
  });
}

std::string telling_line(const std::vector<std::string>& last_lines) {
  for (auto line = last_lines.rbegin(); line != last_lines.rend(); ++line) {
    const std::string low = lower(*line);
    for (const char* word :
         {"error", "exception", "fatal", "abort", "assert", "nccl warn", "failed", "cannot ", "can't "}) {
      if (low.find(word) != std::string::npos) return std::string(trim(*line));
    }
  }
  return last_lines.empty() ? "" : std::string(trim(last_lines.back()));
}

std::string torch_error(std::string_view json) {
  const auto document = nlohmann::json::parse(json, nullptr, false);
  if (!document.is_object() || !document.contains("message")) return {};
  const auto& message = document["message"];
  if (message.is_string()) return message.get<std::string>();
  if (message.is_object() && message.contains("message") && message["message"].is_string()) {
    return message["message"].get<std::string>();
  }
  return {};
}

}  // namespace drun::launcher
