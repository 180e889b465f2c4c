#include "check/check.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "check/baseline.h"
#include "check/check_times.h"
#include "check/collect.h"
#include "check/connect_findings.h"
#include "check/judge.h"
#include "check/measure.h"
#include "check/verdict.h"
#include "check/wall_clock.h"
#include "launcher/connect/connect.h"
#include "launcher/connect/start_watch.h"
#include "launcher/report/events.h"
#include "transport/helper_pool.h"

namespace drun::check {

namespace {

using std::chrono::milliseconds;

// Connection time that the depth's time includes; a longer one extends the deadline.
constexpr auto kUsualConnect = milliseconds(1500);
// Time beyond that of the depth after which a host counts as unresponsive.
constexpr auto kAnswerTime = std::chrono::seconds(15);
// Shorter than a job's, so that a host whose link is cut is noticed while the others are measured.
constexpr launcher::HeartbeatTimes kBeats{milliseconds(1000), milliseconds(5000), milliseconds(8000)};

std::int64_t realtime_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

// Steps 2 to 7 of a check, on agents that have been configured. Owned by the coroutine that awaits run(); its thread.
// `options`, `baseline`, `watch` and the agents outlive it; `baseline` and `watch` may be null.
class Check {
 public:
  // `latest` is the deadline of --timeout.
  Check(asio::io_context& io, std::vector<launcher::AgentChannel*> agents, int head, const CheckOptions& options,
        const Baseline* baseline, Deadline deadline, Deadline latest, launcher::StartWatch* watch)
      : io_(io),
        agents_(std::move(agents)),
        head_(head),
        options_(options),
        baseline_(baseline),
        deadline_(std::min(deadline, latest)),
        latest_(latest),
        watch_(watch),
        cache_(options.cache_directory),
        result_(begin_result(agents_)) {}

  // Does everything except the verdicts, because the caller may add findings.
  Task<CheckResult> run() {
    TaskGroup facts(io_.get_executor());
    for (std::size_t i = 0; i < agents_.size(); ++i) {
      facts.spawn(ask_facts(*agents_[i], facts_request(options_), answer_by(), result_.hosts[i]));
    }
    auto network = co_await launcher::probe_network(io_, agents_, head_, options_.interfaces, answer_by(), watch_);
    if (!network) {
      result_.network_error = std::move(network.error());
    } else {
      network_ = std::move(*network);
      store_network(*network_, result_);
      // Programs that still run on the hosts would disturb the measurements.
      co_await facts.join();
      speeds_known_ = co_await measure_links(io_, agents_, options_, baseline_, deadline_, latest_, *network_, result_);
    }
    co_await facts.join();
    for (std::size_t i = 0; i < agents_.size(); ++i) {
      if (agents_[i]->lost()) set_error(result_.hosts[i], agents_[i]->lost_error());
    }
    const Observations seen = observations();
    all_there_ = seen.gone.empty();
    judge(seen, options_, result_);
    co_return std::move(result_);
  }

  // Must be called after run(), once the verdict is known. Caches the network for the next job if all hosts are
  // ready, otherwise drops it from the cache. Does nothing under --max-rate.
  void keep_network(bool ready) {
    if (!network_ || network_->cache_key.empty() || options_.max_rate_bps > 0) return;
    if (ready && speeds_known_ && all_there_) {
      launcher::keep(cache_, *network_);
    } else {
      cache_.drop(network_->cache_key);
    }
  }
  // nullopt if the network was not probed. Call at most once.
  std::optional<launcher::NetworkProbe> take_probe() { return std::move(network_); }

 private:
  Deadline answer_by() const { return std::min(latest_, std::max(deadline_, Clock::now()) + kAnswerTime); }

  Observations observations() const {
    Observations out;
    out.machines = machines_of(agents_);
    for (std::size_t i = 0; i < agents_.size(); ++i) {
      const auto& facts = result_.hosts[i].facts;
      out.clock_offsets_ms.push_back(
          facts ? wall_clock_offset_ms(agents_[i]->clock(), *facts, monotonic_ns(), realtime_ns()) : std::nullopt);
    }
    out.gone = gone_hosts(agents_, result_);
    out.network = network_ ? &*network_ : nullptr;
    out.baseline = baseline_;
    return out;
  }

  asio::io_context& io_;
  std::vector<launcher::AgentChannel*> agents_;
  int head_;
  const CheckOptions& options_;
  const Baseline* baseline_;
  Deadline deadline_, latest_;
  launcher::StartWatch* watch_;
  launcher::ProbeCache cache_;  // only written to
  std::optional<launcher::NetworkProbe> network_;
  bool speeds_known_ = true;  // speeds that the choice depends on
  bool all_there_ = false;    // no host was lost
  CheckResult result_;
};

void configure(launcher::AgentChannel& agent) {
  agent.set_times(kBeats);
  control::Configure message;
  message.job_id = "check";
  message.heartbeat_ms = static_cast<std::uint32_t>(kBeats.interval.count());
  message.heartbeat_timeout_ms = static_cast<std::uint32_t>(kBeats.timeout.count());
  message.grace_ms = 0;
  agent.send(control::Type::kConfigure, control::encode(message));
}

// Hosts that could not be reached come after the others.
void add_unreached(std::vector<Error> errors, const std::vector<Host>& wanted, CheckResult& result) {
  for (auto& error : errors) {
    CheckedHost host;
    host.name = error.subject;
    for (const auto& given : wanted) {
      if (given.name == error.subject) host.slots = given.slots;
    }
    result.findings.push_back(unreachable_finding(static_cast<int>(result.hosts.size()), error));
    host.error = std::move(error);
    result.hosts.push_back(std::move(host));
  }
  for (auto& row : result.reach) row.resize(result.hosts.size(), -1);
  if (!result.reach.empty()) result.reach.resize(result.hosts.size(), std::vector<int>(result.hosts.size(), -1));
}

Task<void> run_check(asio::io_context& io, asio::thread_pool& helper, const CheckOptions& options,
                     const Baseline* baseline, launcher::Reporter& reporter, CheckResult& out) {
  const Deadline began = Clock::now();
  const Deadline latest = options.timeout.count() > 0 ? Clock::now() + options.timeout : Deadline::max();
  launcher::Events events(reporter);
  launcher::StartWatch watch(io, reporter, events);
  TaskGroup drawing(io.get_executor());
  drawing.spawn(watch.draw());
  launcher::AgentChannels group;
  auto connected =
      co_await launcher::connect_hosts(io, helper, group, options.hosts, options.connect, reporter, &watch);
  // A slow login to one host does not shorten the measurements of the others.
  const auto late = std::max<Clock::duration>(Clock::now() - began - kUsualConnect, Clock::duration(0));
  const Deadline deadline = began + check_time(options.depth) + late;
  std::vector<launcher::AgentChannel*> agents;
  std::vector<ConnectTimes> times;
  for (std::size_t i = 0; i < connected.agents.size(); ++i) {
    launcher::AgentChannel& agent = *connected.agents[i];
    configure(agent);
    agents.push_back(&agent);
    times.push_back(ConnectTimes{agent.name(), agent.login(), connected.times[i]});
  }
  std::unique_ptr<Check> check;
  if (!agents.empty()) {
    check = std::make_unique<Check>(io, agents, connected.head, options, baseline, deadline, latest, &watch);
    out = co_await check->run();
  }
  for (std::size_t i = 0; i < times.size(); ++i) {
    for (const auto& [phase, time] : times[i].phases) out.hosts[i].connect_seconds += time.count();
  }
  for (auto& finding : connect_findings(times)) out.findings.push_back(std::move(finding));
  if (!connected.errors.empty() && connected.errors.front().code == Errc::kUsage) {
    out.network_error = std::move(connected.errors.front());
  } else {
    add_unreached(std::move(connected.errors), options.hosts, out);
  }
  set_verdicts(out);
  if (check) check->keep_network(out.verdict != Verdict::kNotReady);
  watch.stop();
  co_await launcher::end_channels(io, connected.agents);
  co_await drawing.join();
}

// --save-baseline.
void save_baseline(const CheckOptions& options, std::chrono::system_clock::time_point now, launcher::Reporter& reporter,
                   CheckResult& result) {
  const bool whole =
      std::none_of(result.hosts.begin(), result.hosts.end(), [](const auto& host) { return host.error; });
  if (!whole || result.links.links.empty() || options.max_rate_bps > 0) {
    reporter.warning("--save-baseline: nothing is written: " + std::string(!whole ? "a host is missing"
                                                                           : options.max_rate_bps > 0
                                                                               ? "--max-rate hides what is normal"
                                                                               : "no link was measured"));
    return;
  }
  auto saved = write_baseline(options.save_baseline_file, make_baseline(host_names(result), result.links, now));
  if (saved) return;
  reporter.error(saved.error());
  result.not_saved = std::move(saved.error());
}

}  // namespace

Task<CheckResult> check_links(asio::io_context& io, std::vector<launcher::AgentChannel*> hosts, int head,
                              CheckOptions options, Deadline deadline, std::optional<launcher::NetworkProbe>* network) {
  const auto began = Clock::now();
  Check check(io, std::move(hosts), head, options, nullptr, deadline, Deadline::max(), nullptr);
  CheckResult result = co_await check.run();
  // A job may have more workers than GPUs, and use none.
  for (auto& finding : result.findings) {
    if (finding.code == "gpus-fewer") finding.severity = Severity::kWarning;
  }
  set_verdicts(result);
  check.keep_network(result.verdict != Verdict::kNotReady);
  *network = check.take_probe();
  result.seconds = std::chrono::duration<double>(Clock::now() - began).count();
  co_return result;
}

CheckResult check_hosts(CheckOptions options, launcher::Reporter& reporter) {
  asio::io_context io(1);
  transport::HelperPool helper;
  options.connect.keep_reachable = true;
  CheckResult out;
  const auto wall = std::chrono::system_clock::now();
  const auto began = Clock::now();
  const CheckDepth depth = options.depth;
  std::optional<Baseline> baseline;
  if (!options.baseline_file.empty()) {
    auto read = read_baseline(options.baseline_file);
    if (!read) {
      out.network_error = std::move(read.error());
      return out;
    }
    baseline = std::move(*read);
  }
  if (options.timeout.count() > 0) {
    // The other half is left for the hosts that can be reached.
    const auto limit = std::chrono::ceil<std::chrono::seconds>(options.timeout / 2);
    options.connect.start_timeout = std::min(options.connect.start_timeout, limit);
  }
  run_on_loop(io, run_check(io, helper.get(), options, baseline ? &*baseline : nullptr, reporter, out));
  if (!options.save_baseline_file.empty()) save_baseline(options, wall, reporter, out);
  out.version = DRUN_VERSION;
  out.begin = wall;
  out.seconds = std::chrono::duration<double>(Clock::now() - began).count();
  out.depth = depth;
  return out;
}

}  // namespace drun::check
