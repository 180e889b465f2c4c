#include "launcher/report/progress.h"

#include <algorithm>

#include "base/text.h"
#include "base/units.h"

namespace drun::launcher {

namespace {

const char* stage_name(Stage stage) {
  switch (stage) {
    case Stage::kConnect:
      return "connect";
    case Stage::kProbe:
      return "probe";
    case Stage::kPrepare:
      return "prepare";
    case Stage::kStart:
      return "start";
  }
  return "";
}

const char* doing(Stage stage) {
  switch (stage) {
    case Stage::kConnect:
      return "connecting";
    case Stage::kProbe:
      return "probing the network";
    case Stage::kPrepare:
      return "preparing";
    case Stage::kStart:
      return "starting workers";
  }
  return "";
}

}  // namespace

void Progress::begin(Stage stage, std::vector<std::string> names, Time now) {
  stage_ = stage;
  began_ = now;
  hosts_.clear();
  for (auto& name : names) {
    HostState host;
    host.name = std::move(name);
    host.since = host.ended = now;
    hosts_.push_back(std::move(host));
  }
}

// The time since the last change counts for the phase that ends now.
void Progress::leave(HostState& host, Time now) {
  if (host.entered && host.state == State::kWaiting) {
    const auto known = std::find_if(host.times.begin(), host.times.end(),
                                    [&](const auto& entry) { return entry.first == host.phase; });
    if (known != host.times.end()) known->second += now - host.since;
  }
  host.since = now;
}

void Progress::enter(std::size_t index, transport::Phase phase, Time now) {
  HostState& host = hosts_[index];
  if (host.entered && host.state == State::kWaiting && host.phase == phase) return;
  leave(host, now);
  host.entered = true;
  host.state = State::kWaiting;
  host.phase = phase;
  const bool known =
      std::any_of(host.times.begin(), host.times.end(), [&](const auto& entry) { return entry.first == phase; });
  if (!known) host.times.emplace_back(phase, 0);
}

void Progress::done(std::size_t index, Time now) {
  leave(hosts_[index], now);
  hosts_[index].state = State::kDone;
  hosts_[index].ended = now;
}

void Progress::failed(std::size_t index, Time now) {
  leave(hosts_[index], now);
  hosts_[index].state = State::kFailed;
  hosts_[index].ended = now;
}

std::string Progress::line(Time now, std::size_t width) const {
  if (hosts_.empty()) return "";
  const auto count = [this](State state) {
    return std::count_if(hosts_.begin(), hosts_.end(), [state](const auto& h) { return h.state == state; });
  };
  std::string out =
      std::string(doing(stage_)) + " " + std::to_string(count(State::kDone)) + "/" + std::to_string(hosts_.size());
  if (const auto n_failed = count(State::kFailed); n_failed > 0) out += ", " + std::to_string(n_failed) + " failed";
  if (now - began_ >= kSlow) {
    const auto n_slow = static_cast<std::size_t>(count(State::kWaiting));
    std::size_t n_named = 0;
    for (const auto& host : hosts_) {
      if (host.state != State::kWaiting) continue;
      std::string item = (n_named == 0 ? ": waiting for " : ", ") + host.name;
      if (stage_ == Stage::kConnect) item += std::string(" (") + transport::phase_name(host.phase) + ")";
      const std::size_t n_rest = n_slow - n_named - 1;
      const std::size_t tail = n_rest == 0 ? 0 : (" and " + std::to_string(n_rest) + " more").size();
      if (out.size() + item.size() + tail > width) break;
      out += item;
      ++n_named;
    }
    if (n_named > 0 && n_named < n_slow) out += " and " + std::to_string(n_slow - n_named) + " more";
  }
  return out.substr(0, width);
}

std::string Progress::summary(Time now) const {
  std::string out =
      std::string(stage_name(stage_)) + " " + plural(hosts_.size(), "host") + " " + time_text(now - began_);
  const auto slowest =
      std::max_element(hosts_.begin(), hosts_.end(), [](const auto& a, const auto& b) { return a.ended < b.ended; });
  if (hosts_.size() > 1) out += " (slowest " + slowest->name + " " + time_text(slowest->ended - began_) + ")";
  return out;
}

std::string Progress::host_summary(std::size_t index) const {
  std::vector<std::string> parts;
  for (const auto& [phase, time] : hosts_[index].times) {
    parts.push_back(std::string(transport::phase_name(phase)) + " " + time_text(time));
  }
  return hosts_[index].name + ": " + join(parts, ", ");
}

}  // namespace drun::launcher
