#include "check/check.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "base/exit_status.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "check/baseline.h"
#include "check/connect_findings.h"
#include "check/host_findings.h"
#include "check/link_findings.h"
#include "check/reach_findings.h"
#include "check/wall_clock.h"
#include "launcher/connect/start_watch.h"
#include "launcher/network/link_tests.h"
#include "launcher/network/network.h"
#include "launcher/network/network_speed.h"
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
constexpr std::size_t kDefaultGradient = 100'000'000;
// Timeouts of programs on a host, above all nvidia-smi.
constexpr auto kTool = milliseconds(8000), kQuickTool = milliseconds(2500);
// Variables of a login's environment that may interfere with drun's choices.
constexpr const char* kVariables[] = {"NCCL_*",  "GLOO_*",  "TP_*",     "UCX_*",
                                      "*_proxy", "*_PROXY", "MASTER_*", "CUDA_VISIBLE_DEVICES"};

std::int64_t realtime_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

// Minimum time for measuring links, however long the steps before it took.
milliseconds min_time(CheckDepth depth) {
  return depth == CheckDepth::kQuick ? check_time(depth) / 3 : check_time(depth) * 4 / 5;
}

void append(std::vector<Finding>& all, std::vector<Finding> more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
}

void diagnose(CheckResult& result) {
  // Reports the error of `drun run` if no other finding says why it would not start.
  const bool told = std::any_of(result.findings.begin(), result.findings.end(),
                                [](const Finding& finding) { return finding.severity == Severity::kFailure; });
  if (result.network_error && !told) {
    Finding finding = unreachable_finding(-1, *result.network_error);
    finding.code = "no-common-network";
    if (result.network_error->hint.empty()) finding.command = "drun check --network-interfaces NETWORK ...";
    result.findings.push_back(std::move(finding));
  }
  sort_findings(result.findings);
  std::vector<Severity> worst(result.hosts.size(), Severity::kNote);
  Severity overall = Severity::kNote;
  for (const Finding& finding : result.findings) {
    overall = std::max(overall, finding.severity);
    for (const int host : finding.hosts) {
      auto& of_host = worst[static_cast<std::size_t>(host)];
      of_host = std::max(of_host, finding.severity);
    }
  }
  for (std::size_t i = 0; i < result.hosts.size(); ++i) {
    if (result.hosts[i].error) worst[i] = overall = Severity::kFailure;
    result.hosts[i].verdict = verdict_of(worst[i]);
  }
  result.verdict = verdict_of(overall);
}

class Check {
 public:
  // `baseline` may be null. `latest` is the deadline of --timeout.
  Check(asio::io_context& io, std::vector<launcher::AgentChannel*> hosts, int head, const CheckOptions& options,
        const Baseline* baseline, Deadline deadline, Deadline latest, launcher::StartWatch* watch)
      : io_(io),
        hosts_(std::move(hosts)),
        head_(head),
        options_(options),
        baseline_(baseline),
        deadline_(std::min(deadline, latest)),
        latest_(latest),
        watch_(watch),
        cache_(options.cache_directory) {
    for (const launcher::AgentChannel* host : hosts_) {
      CheckedHost checked;
      checked.name = host->name();
      checked.host_name = host->hello().host_name;
      checked.slots = host->host().slots;
      checked.interfaces = host->hello().interfaces;
      result_.hosts.push_back(std::move(checked));
    }
  }

  // Does everything except the verdicts, because the caller may add findings.
  Task<CheckResult> run() {
    TaskGroup facts(io_.get_executor());
    for (std::size_t i = 0; i < hosts_.size(); ++i) facts.spawn(ask_facts(i));
    auto network = co_await launcher::probe_network(io_, hosts_, head_, options_.interfaces, answer_by(), watch_);
    if (!network) {
      result_.network_error = std::move(network.error());
    } else {
      network_ = std::move(*network);
      network_probed_ = true;
      take_network();
      // Programs that still run on the hosts would disturb the measurements.
      co_await facts.join();
      co_await measure();
    }
    co_await facts.join();
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      if (hosts_[i]->lost()) lose(i, hosts_[i]->lost_error());
    }
    all_there_ = gone().empty();
    diagnose_network();
    diagnose_hosts();
    co_return std::move(result_);
  }

  // Must be called after run(), once the verdict is known. Caches the network for the next job if all hosts are
  // ready, otherwise drops it from the cache. Does nothing under --max-rate.
  void keep_network(bool ready) {
    if (!network_probed_ || network_.cache_key.empty() || options_.max_rate_bps > 0) return;
    if (ready && speeds_known_ && all_there_) {
      launcher::keep(cache_, network_);
    } else {
      cache_.drop(network_.cache_key);
    }
  }
  // nullopt if the network was not probed. Call at most once.
  std::optional<launcher::NetworkProbe> take_probe() {
    if (!network_probed_) return std::nullopt;
    return std::move(network_);
  }

 private:
  Deadline answer_by() const { return std::min(latest_, std::max(deadline_, Clock::now()) + kAnswerTime); }
  bool gone(std::size_t host) const { return hosts_[host]->lost() || result_.hosts[host].error.has_value(); }

  Task<void> ask_facts(std::size_t i) {
    control::AskFacts question;
    question.argv = options_.command;
    question.working_directory = options_.working_directory;
    question.environment = options_.environment;
    question.variables.assign(std::begin(kVariables), std::end(kVariables));
    question.tool_ms = static_cast<std::uint32_t>(tool_time().count());
    std::string body = control::encode(question);
    std::string what = "facts";
    auto frame = co_await hosts_[i]->request(control::Type::kAskFacts, std::move(body), control::Type::kFacts,
                                             std::move(what), answer_by());
    if (!frame) {
      lose(i, std::move(frame.error()));
      co_return;
    }
    auto answer = control::decode<control::Facts>(frame->body);
    if (!answer) {
      lose(i, std::move(answer.error()).with_subject(hosts_[i]->name()));
      co_return;
    }
    result_.hosts[i].facts = std::move(answer->facts);
  }

  milliseconds tool_time() const { return options_.depth == CheckDepth::kQuick ? kQuickTool : kTool; }

  void lose(std::size_t host, Error error) {
    if (!result_.hosts[host].error) result_.hosts[host].error = std::move(error);
  }

  void take_network() {
    for (auto& host : result_.hosts) host.rejected.clear();
    for (const auto& rejection : network_.candidates.rejected) {
      result_.hosts[static_cast<std::size_t>(rejection.host)].rejected.push_back(rejection);
    }
    for (auto& [host, error] : network_.lost) lose(static_cast<std::size_t>(host), error);
    const auto& choice = network_.most.choice;
    for (std::size_t i = 0; i < result_.hosts.size() && i < choice.hosts.size(); ++i) {
      result_.hosts[i].choice.reset();
      if (!choice.hosts[i].interface.empty()) result_.hosts[i].choice = choice.hosts[i];
    }
    result_.reach = choice.reach;
    if (network_.most.error) result_.network_error = network_.most.error;
  }

  std::vector<LinkHost> link_hosts() const {
    std::vector<LinkHost> out;
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      out.push_back(link_host(hosts_[i]->name(), hosts_[i]->hello().boot_id, result_.hosts[i].choice,
                              result_.hosts[i].interfaces));
    }
    return out;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& host : result_.hosts) out.push_back(host.name);
    return out;
  }

  std::vector<int> gone() const {
    std::vector<int> out;
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      if (gone(i)) out.push_back(static_cast<int>(i));
    }
    return out;
  }

  Task<void> measure() {
    std::vector<int> order;
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      if (result_.hosts[i].choice && !gone(i)) order.push_back(static_cast<int>(i));
    }
    if (order.size() < 2) co_return;
    const Deadline end = std::min(latest_, std::max(deadline_, Clock::now() + min_time(options_.depth)));
    const auto whole = end - Clock::now();
    launcher::LinkCheck links(io_, hosts_, network_.most.choice, link_times(options_.depth),
                              static_cast<std::uint64_t>(options_.max_rate_bps));
    co_await links.listen(end);
    // With a limit all networks would poll alike.
    if (options_.max_rate_bps <= 0) {
      std::vector<int> missing = gone();
      speeds_known_ = co_await launcher::choose_by_speed(
          network_, links, std::move(missing), link_times(options_.depth).bandwidth_min, end - whole * 7 / 10);
      take_network();
    }
    links.use(network_.most.choice);
    result_.links.links = co_await links.first_pass(end - whole * 3 / 10);
    log_step("links: all pairs", end);
    result_.links.ring = co_await links.ring(order, end - whole * 2 / 10);
    log_step("links: ring", end);
    std::vector<netdetect::HostPair> also;
    if (baseline_) also = pairs_below_baseline(names(), result_.links.links, *baseline_);
    auto again = pairs_to_repeat(link_hosts(), result_.links.links, also);
    const std::size_t n_again = again.size();
    // The second pass, which identifies what the first one found, may take as long again.
    const bool quick = options_.depth == CheckDepth::kQuick;
    const Deadline more = quick ? end : std::min(latest_, end + check_time(options_.depth));
    result_.links.second_pass = co_await links.measure_again(std::move(again), more);
    log_step("links: " + std::to_string(result_.links.second_pass.size()) + " of " + std::to_string(n_again) +
                 " pairs again",
             more);
    for (const auto& note : links.notes()) result_.notes.push_back(note);
  }

  static void log_step(const std::string& what, Deadline end) {
    log::debug(what + ", time left: " + launcher::seconds_text(end - Clock::now()));
  }

  void diagnose_network() {
    if (!network_probed_) return;
    append(result_.findings, reach_findings(network_.inventories, network_.candidates, network_.results, network_.most,
                                            gone(), options_.purpose));
    result_.links.max_rate = options_.max_rate_bps;
    if (options_.max_rate_bps > 0) {
      result_.notes.push_back("rates, and what is predicted of them, are those that --max-rate allows");
    }
    append(result_.findings, link_findings(link_hosts(), result_.links));
    if (baseline_) {
      append(result_.findings, baseline_findings(names(), result_.links, *baseline_));
    }
    CostInput input;
    for (std::size_t i = 0; i < result_.hosts.size(); ++i) {
      const CheckedHost& host = result_.hosts[i];
      input.slots.push_back(host.choice && !host.error ? host.slots : 0);
      input.machines.push_back(hosts_[i]->hello().boot_id);
      input.cores.push_back(host.facts ? host.facts->n_cpus : 0);
    }
    auto predicted =
        predict(input, result_.links, options_.gradient_bytes.value_or(kDefaultGradient), options_.step_seconds);
    if (!predicted.curve.empty()) result_.predicted = std::move(predicted);
  }

  void diagnose_hosts() {
    std::vector<ExaminedHost> examined;
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      const CheckedHost& host = result_.hosts[i];
      ExaminedHost out;
      out.name = host.name;
      out.slots = host.slots;
      if (host.facts) {
        out.facts = &*host.facts;
        out.clock_offset_ms = wall_clock_offset_ms(hosts_[i]->clock(), *host.facts, monotonic_ns(), realtime_ns());
      }
      if (host.choice) {
        out.interface = host.choice->interface;
        out.address = host.choice->address.text();
      }
      examined.push_back(std::move(out));
    }
    HostQuestion question;
    question.has_command = !options_.command.empty();
    for (std::size_t i = 1; i < options_.command.size() && question.script.empty(); ++i) {
      if (options_.command[i].rfind('-', 0) != 0) question.script = options_.command[i];
    }
    question.environment = options_.environment;
    append(result_.findings, host_findings(examined, question));
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      if (result_.hosts[i].error) {
        result_.findings.push_back(unreachable_finding(static_cast<int>(i), *result_.hosts[i].error));
      }
    }
  }

  asio::io_context& io_;
  std::vector<launcher::AgentChannel*> hosts_;
  int head_;
  const CheckOptions& options_;
  const Baseline* baseline_;
  Deadline deadline_, latest_;
  launcher::StartWatch* watch_;
  launcher::ProbeCache cache_;  // only written to
  launcher::NetworkProbe network_;
  bool network_probed_ = false;
  bool speeds_known_ = true;  // speeds that the choice depends on
  bool all_there_ = false;    // no host was lost
  CheckResult result_;
};

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
  std::vector<launcher::AgentChannel*> links;
  std::vector<ConnectTimes> times;
  for (std::size_t i = 0; i < connected.links.size(); ++i) {
    launcher::AgentChannel* const link = connected.links[i].get();
    links.push_back(link);
    times.push_back(ConnectTimes{link->name(), connected.times[i]});
    link->set_times(kBeats);
    control::Configure configure;
    configure.job_id = "check";
    configure.heartbeat_ms = static_cast<std::uint32_t>(kBeats.interval.count());
    configure.heartbeat_timeout_ms = static_cast<std::uint32_t>(kBeats.timeout.count());
    configure.grace_ms = 0;
    link->send(control::Type::kConfigure, control::encode(configure));
  }
  std::unique_ptr<Check> check;
  if (!links.empty()) {
    check = std::make_unique<Check>(io, links, connected.head, options, baseline, deadline, latest, &watch);
    out = co_await check->run();
  }
  for (std::size_t i = 0; i < times.size(); ++i) {
    for (const auto& [phase, time] : times[i].phases) out.hosts[i].connect_seconds += time.count();
  }
  append(out.findings, connect_findings(times));
  // Hosts that could not be reached come after the others.
  for (auto& error : connected.errors) {
    CheckedHost host;
    host.name = error.subject;
    for (const auto& given : options.hosts) {
      if (given.name == error.subject) host.slots = given.slots;
    }
    out.findings.push_back(unreachable_finding(static_cast<int>(out.hosts.size()), error));
    host.error = std::move(error);
    out.hosts.push_back(std::move(host));
  }
  for (auto& row : out.reach) row.resize(out.hosts.size(), -1);
  if (!out.reach.empty()) out.reach.resize(out.hosts.size(), std::vector<int>(out.hosts.size(), -1));
  diagnose(out);
  if (check) check->keep_network(out.verdict != Verdict::kNotReady);
  watch.stop();
  co_await launcher::end_channels(io, connected.links);
  co_await drawing.join();
}

}  // namespace

launcher::LinkTimes link_times(CheckDepth depth) {
  launcher::LinkTimes times = launcher::quick_link_times();
  switch (depth) {
    case CheckDepth::kQuick:
      break;
    case CheckDepth::kDefault:
      times.n_round_trips = 100;
      times.round_trips = milliseconds(500);
      times.bandwidth_min = milliseconds(150);
      times.bandwidth_max = milliseconds(500);
      times.four_streams = true;
      break;
    case CheckDepth::kFull:
      times.n_round_trips = 1000;
      times.round_trips = milliseconds(2000);
      times.bandwidth_min = milliseconds(300);
      times.bandwidth_max = milliseconds(1000);
      times.four_streams = true;
      break;
  }
  return times;
}

milliseconds check_time(CheckDepth depth) {
  switch (depth) {
    case CheckDepth::kQuick:
      return milliseconds(4500);  // 5 s including the end of the agents
    case CheckDepth::kFull:
      return milliseconds(60000);
    case CheckDepth::kDefault:
      break;
  }
  return milliseconds(15000);
}

int check_status(const CheckResult& result, bool strict) {
  for (const auto& host : result.hosts) {
    if (host.error) return exit_status(host.error->code);
  }
  if (result.network_error) return exit_status(result.network_error->code);
  if (result.verdict == Verdict::kNotReady) return kExitNotReady;
  if (strict && result.verdict == Verdict::kWarnings) return kExitNotReady;
  return result.not_saved ? kExitUsage : kExitOk;
}

Task<CheckResult> check_links(asio::io_context& io, std::vector<launcher::AgentChannel*> hosts, int head,
                              CheckOptions options, Deadline deadline, std::optional<launcher::NetworkProbe>* network) {
  const auto began = Clock::now();
  Check check(io, std::move(hosts), head, options, nullptr, deadline, Deadline::max(), nullptr);
  CheckResult result = co_await check.run();
  // A job may have more workers than GPUs, and use none.
  for (auto& finding : result.findings) {
    if (finding.code == "gpus-fewer") finding.severity = Severity::kWarning;
  }
  diagnose(result);
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
  const bool whole = std::none_of(out.hosts.begin(), out.hosts.end(), [](const auto& host) { return host.error; });
  if (!options.save_baseline_file.empty() && (!whole || out.links.links.empty() || options.max_rate_bps > 0)) {
    reporter.warning("--save-baseline: nothing is written: " + std::string(!whole ? "a host is missing"
                                                                           : options.max_rate_bps > 0
                                                                               ? "--max-rate hides what is normal"
                                                                               : "no link was measured"));
  } else if (!options.save_baseline_file.empty()) {
    std::vector<std::string> names;
    for (const auto& host : out.hosts) names.push_back(host.name);
    auto saved = write_baseline(options.save_baseline_file, make_baseline(names, out.links, wall));
    if (!saved) {
      reporter.error(saved.error());
      out.not_saved = std::move(saved.error());
    }
  }
  out.version = DRUN_VERSION;
  out.begin = wall;
  out.seconds = std::chrono::duration<double>(Clock::now() - began).count();
  out.depth = depth;
  return out;
}

}  // namespace drun::check
