#include "launcher/run/timeline.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/fd.h"
#include "base/json_text.h"
#include "base/new_file.h"
#include "recorder/layout.h"
#include "recorder/words.h"

namespace drun::launcher {

namespace {

using Json = nlohmann::ordered_json;

constexpr mode_t kMode = 0666;                               // less the umask
constexpr std::uint64_t kLatestNs = std::uint64_t{1} << 61;  // later than any clock shows: no sum overflows

std::string text_of(const Json& json) { return json_text(json); }

}  // namespace

// ---- the calls

void TimelineCalls::expect(const RankTable& ranks, std::int64_t begin_ns) {
  table_ = &ranks;
  clocks_.resize(ranks.hosts().size());
  ranks_.resize(ranks.size());
  begin_ns_ = begin_ns;
}

void TimelineCalls::take(const control::Timeline& message) {
  if (message.rank >= ranks_.size()) return;
  Rank& rank = ranks_[message.rank];
  rank.n_lost += message.n_lost;
  for (const auto& m : message.calls) {
    if (n_calls_ >= kMaxCalls) {
      ++rank.n_lost;
      continue;
    }
    ++n_calls_;
    Call call;
    call.seq = m.seq;
    call.count = m.count;
    call.started_ns = static_cast<std::int64_t>(std::min(m.started_ns, kLatestNs));
    call.ended_ns = static_cast<std::int64_t>(std::min(m.ended_ns, kLatestNs));
    call.comm = m.comm;
    call.group = m.group;
    call.queued_us = m.queued_us;
    call.root = m.root;
    call.kind = m.kind;
    call.dtype = m.dtype;
    call.op = m.op;
    call.status = static_cast<std::int8_t>(m.status);
    const auto [known, is_new] = name_numbers_.emplace(m.name, static_cast<std::uint32_t>(names_.size()));
    if (is_new) names_.push_back(m.name.empty() ? "" : text_of(m.name));
    call.name = known->second;
    rank.calls.push_back(call);
  }
}

std::uint64_t TimelineCalls::n_lost() const {
  std::uint64_t n = 0;
  for (const auto& rank : ranks_) n += rank.n_lost;
  return n;
}

double TimelineCalls::micros(int host, std::int64_t host_ns) const {
  return static_cast<double>(clocks_[static_cast<std::size_t>(host)].ours(host_ns) - begin_ns_) * 1e-3;
}

std::string TimelineCalls::head(const std::string& job_id) const {
  Json about;
  about["job"] = job_id;
  about["hosts"] = Json::array();
  for (std::size_t i = 0; i < clocks_.size(); ++i) {
    Json host;
    host["name"] = table_->hosts()[i];
    host["clock_uncertainty_us"] = static_cast<double>(clocks_[i].uncertainty_ns()) * 1e-3;
    about["hosts"].push_back(host);
  }
  about["lost"] = Json::object();
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (ranks_[i].n_lost > 0) about["lost"][std::to_string(i)] = ranks_[i].n_lost;
  }
  std::string out = "{\"displayTimeUnit\":\"ms\",\"otherData\":" + text_of(about) + ",\"traceEvents\":[";
  auto metadata = [&, first = true](const char* what, std::size_t pid, std::size_t tid, Json value) mutable {
    Json event;
    event["ph"] = "M";
    event["name"] = what;
    event["pid"] = pid;
    event["tid"] = tid;
    event["args"] = std::move(value);
    out += (std::exchange(first, false) ? "\n" : ",\n") + text_of(event);
  };
  const auto arg = [](const char* name, Json value) {
    Json args;
    args[name] = std::move(value);
    return args;
  };
  for (std::size_t i = 0; i < clocks_.size(); ++i) {
    metadata("process_name", i, 0, arg("name", table_->hosts()[i]));
    metadata("process_sort_index", i, 0, arg("sort_index", i));
  }
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const auto host = static_cast<std::size_t>(table_->at(static_cast<int>(i)).host);
    metadata("thread_name", host, i, arg("name", "rank " + std::to_string(i)));
    metadata("thread_sort_index", host, i, arg("sort_index", i));
  }
  return out;
}

std::string TimelineCalls::event(std::size_t number, const Call& call) const {
  const RankEntry& rank = table_->at(static_cast<int>(number));
  const bool is_open = call.ended_ns == 0;
  const auto rank_ended_ns = static_cast<std::int64_t>(std::min(rank.ended_ns.value_or(0), kLatestNs));
  const std::int64_t end_ns = is_open ? std::max(rank_ended_ns, call.started_ns) : call.ended_ns;
  const double from = micros(rank.host, call.started_ns);
  const double time = std::max(0.0, micros(rank.host, end_ns) - from);
  char numbers[160];
  std::snprintf(numbers, sizeof numbers, ",\n{\"ph\":\"X\",\"pid\":%d,\"tid\":%zu,\"ts\":%.3f,\"dur\":%.3f,\"name\":\"",
                rank.host, number, from, time);
  // Formatted by hand, because there may be millions. The inserted texts need no escaping, except the name, which is
  // already quoted.
  std::string out = numbers;
  out += recorder::kind_text(call.kind) + "\",\"cat\":\"libdrun\",\"args\":{\"seq\":" + std::to_string(call.seq);
  if (!names_[call.name].empty()) out += ",\"name\":" + names_[call.name];
  const auto add = [&out](const char* name, auto value) {
    out += ",\"";
    out += name;
    out += "\":" + std::to_string(value);
  };
  if (recorder::has_dtype(call.kind)) {
    add("count", call.count);
    out += ",\"dtype\":\"" + recorder::dtype_text(call.dtype) + "\"";
    add("bytes", call.count * recorder::dtype_bytes(call.dtype));
  }
  if (recorder::reduces(call.kind)) out += ",\"op\":\"" + recorder::op_text(call.op) + "\"";
  if (recorder::has_root(call.kind)) add(call.kind >= recorder::kFirstPairKind ? "peer" : "root", call.root);
  if (call.comm != 0) {
    add("communicator", call.comm);
    add("group", call.group);
  }
  if (call.queued_us != 0) add("queued_us", call.queued_us);
  if (call.status != 0) add("status", static_cast<int>(call.status));
  if (is_open) out += ",\"unfinished\":true";
  return out + "}}";
}

// ---- the file

Result<void> Timeline::open(const std::string& path) {
  const auto file = NewFile::create(path, kMode);
  if (!file) return fail(Error(Errc::kUsage, "--timeline", file.error().cause));
  path_ = path;
  return {};
}

void Timeline::expect(const std::vector<AgentChannel*>& hosts, const RankTable& ranks, std::int64_t begin_ns) {
  for (const AgentChannel* host : hosts) hosts_.push_back(HostEnd{host, false});
  calls_.expect(ranks, begin_ns);
}

void Timeline::take(const AgentChannel& host, const control::Timeline& message) {
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i].agent != &host) continue;
    calls_.clock(i).add(host.clock());
    if (message.rank == control::Timeline::kEnd) {
      hosts_[i].ended = true;
      changed_.notify();
    }
  }
  calls_.take(message);
}

bool Timeline::all_ended() const {
  return std::all_of(hosts_.begin(), hosts_.end(),
                     [](const HostEnd& host) { return host.ended || host.agent->lost(); });
}

Task<void> Timeline::wait(Deadline deadline) {
  while (!all_ended()) {
    const bool in_time = co_await changed_.wait_until(deadline);  // GCC 12 traps in `if (!co_await ...)` here
    if (!in_time) break;
    changed_.reset();
  }
}

Result<void> Timeline::write(const std::string& job_id) {
  auto file = NewFile::create(std::exchange(path_, {}), kMode);
  if (!file) return fail(std::move(file.error()).with_subject("--timeline"));
  Result<void> written;
  calls_.write(job_id, [&](std::string_view piece) {
    written = file->write(piece);
    return written.has_value();
  });
  if (written) written = file->commit();
  if (!written) return fail(std::move(written.error()).with_subject("--timeline"));
  return {};
}

}  // namespace drun::launcher
