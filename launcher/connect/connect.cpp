#include "launcher/connect/connect.h"

#include <sodium.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "base/error_id.h"
#include "base/log.h"
#include "base/text.h"
#include "launcher/connect/host_words.h"
#include "launcher/connect/same_machine.h"
#include "transport/backoff.h"
#include "transport/child_channel.h"
#include "transport/openssh_args.h"

namespace drun::launcher {

namespace {

// Time that an agent may need to end in addition to --grace, on an otherwise healthy machine: the guard's timeout for a
// frozen agent, and its sweep.
constexpr auto kAgentEnd = std::chrono::seconds(40);
// The silence of a host after which its connection breaks: at least the first, and --heartbeat-timeout with the second,
// so that the error that names the silence comes first.
constexpr auto kShortestSilence = std::chrono::seconds(30);
constexpr auto kMoreSilence = std::chrono::seconds(5);

// For the proof that two names are one machine.
constexpr auto kProofTime = std::chrono::seconds(5);

// One host that is being connected.
struct Attempt {
  Host host;
  transport::SshTarget target;
  bool local = false;
  std::unique_ptr<AgentChannel> agent;
  Error error;
  transport::OnPhase on_phase;
  transport::Phase phase = transport::Phase::kAgent;
  Progress::Times times;
  Deadline phase_began{};

  void enter(transport::Phase next) {
    leave();
    phase = next;
    times.emplace_back(next, 0);
    phase_began = Clock::now();
  }
  void leave() {
    if (!times.empty()) times.back().second += Clock::now() - phase_began;
  }
};

struct Tools {
  asio::io_context& io;
  AgentChannels& group;
  transport::Transport& transport;
  AgentBinary agent;
  ConnectOptions options;
  Deadline deadline;
  Reporter& reporter;
};

// The cause of the error for a host that was silent until the deadline, after the transport's own phases.
std::string missing_answer(transport::Phase phase, std::chrono::seconds limit) {
  const std::string within = " within " + std::to_string(limit.count()) + " s";
  if (phase == transport::Phase::kDelivery) return "agent: its delivery did not end" + within;
  return "agent: no hello" + within +
         (phase == transport::Phase::kSsh ? "; OpenSSH's client does not say how far it got" : "");
}

std::string random_hex(std::size_t n_bytes) {
  std::string bytes(n_bytes, '\0');
  randombytes_buf(bytes.data(), bytes.size());
  return hex(bytes);
}

Task<void> close_channel(std::unique_ptr<transport::Channel> channel) {
  channel->close();
  co_await channel->join();
}

Task<Result<std::unique_ptr<transport::Channel>>> open_channel(const Attempt& attempt, const Tools& tools,
                                                               std::string nonce, bool delivers_anew) {
  if (!attempt.local) {
    const std::string command = bootstrap_command(tools.agent, nonce, tools.options.agent_path, delivers_anew);
    co_return co_await tools.transport.open(attempt.target, command, tools.deadline, &attempt.on_phase);
  }
  const std::vector<std::string> argv = {tools.agent.path};
  attempt.on_phase(transport::Phase::kAgent);
  transport::ChildProcess::Ending ending;
  ending.is_agent = true;
  ending.kill_delay = tools.options.grace + kAgentEnd;
  auto opened = transport::spawn_child_channel(tools.io, argv, ending);
  if (!opened) co_return fail(std::move(opened.error()).with_subject(attempt.host.name));
  co_return std::move(*opened);
}

TypedLogin typed_login(const Attempt& attempt, const Tools& tools) {
  if (attempt.local) return {"", "localhost"};
  const auto& agent = tools.options.launch_agent;
  return {agent.empty() ? transport::typed_ssh(attempt.target)
                        : join(agent, " ") + " " + shell_quote(transport::typed_host(attempt.target)),
          attempt.target.host_name};
}

// The error of a host whose agent said nothing until the deadline.
Error late_agent(const Attempt& attempt, const Tools& tools, const std::string& words) {
  Error error(Errc::kUnreachable, attempt.host.name, missing_answer(attempt.phase, tools.options.start_timeout));
  error.id = error_id::kAgent;
  for (const auto& line : last_lines_of_host(words)) error = std::move(error).with_context("it said: " + line);
  return std::move(error).with_hint("a slow host: raise --start-timeout");
}

// Why a try that failed may be repeated.
struct Mishap {
  // The path of the host's own agent, if that ended without a hello, or said nothing for a third of the time that was
  // left: then there is time to deliver another one.
  std::string damaged;
  bool is_dropped = false;  // see was_dropped(); the host has not begun to answer
};

Task<Result<std::unique_ptr<AgentChannel>>> try_host(const Attempt& attempt, const Tools& tools, bool delivers_anew,
                                                     Mishap& mishap) {
  const std::string nonce = random_hex(6);
  std::string nonce_of_command = nonce;
  TypedLogin login = typed_login(attempt, tools);
  auto opened = co_await open_channel(attempt, tools, std::move(nonce_of_command), delivers_anew);
  if (!opened) co_return fail(std::move(opened.error()));
  auto channel = std::move(*opened);
  control::FrameParser parser;
  transport::Channel* const raw = channel.get();
  Result<control::Hello> hello;
  std::string cached;
  bool late = false, is_silent = false;
  {
    const auto close = [raw] { raw->close(); };
    DeadlineGuard guard(tools.io.get_executor(), tools.deadline, close);
    std::optional<DeadlineGuard> silence;
    const OnCached on_cached = [&](std::string path) {
      cached = std::move(path);
      const auto now = Clock::now();
      silence.emplace(tools.io.get_executor(), now + (tools.deadline - now) / 3, close);
    };
    hello = co_await bring_agent(*raw, tools.agent, nonce, attempt.host.name, login.words, parser, on_cached,
                                 &attempt.on_phase);
    late = guard.fired();
    is_silent = silence && silence->fired();
  }
  if (!hello) {
    if (!late) mishap = {std::move(cached), attempt.phase == transport::Phase::kSsh && was_dropped(*raw)};
    Error error = late ? late_agent(attempt, tools, raw->stderr_text())
                  : is_silent
                      ? Error(Errc::kUnreachable, attempt.host.name, "agent: no hello").with_id(error_id::kAgent)
                      : std::move(hello.error());
    if (error.hint.empty() && !login.words.empty()) error.hint = login.words + " true";
    co_await close_channel(std::move(channel));
    co_return fail(std::move(error));
  }
  log::debug(attempt.host.name + ": agent " + std::to_string(hello->pid) + " (" + hello->path + ")");
  auto agent = std::make_unique<AgentChannel>(tools.io, tools.group, attempt.host, std::move(channel),
                                              std::move(*hello), std::move(parser));
  agent->set_login(std::move(login));
  co_return agent;
}

// A damaged file in the host's cache (a full disk, a power cut) is replaced, once, also if its program hangs.
Task<Result<std::unique_ptr<AgentChannel>>> connect_host(const Attempt& attempt, const Tools& tools) {
  transport::Backoff backoff;
  bool delivers_anew = false;
  std::string drop;
  for (;;) {
    Mishap mishap;
    auto agent = co_await try_host(attempt, tools, delivers_anew, mishap);
    if (agent) co_return agent;
    const auto next = mishap.is_dropped ? backoff.next(tools.deadline) : std::nullopt;
    if (next) {
      drop = agent.error().cause;
      log::debug(attempt.host.name + ": dropped before the banner, trying again: " + drop);
      co_await sleep_until(*next);
    } else if (!delivers_anew && !mishap.damaged.empty()) {
      tools.reporter.note(attempt.host.name + ": " + mishap.damaged +
                          " did not start, and is delivered again: " + agent.error().cause);
      delivers_anew = true;
    } else {
      if (!drop.empty() && !mishap.is_dropped) {
        co_return fail(std::move(agent.error()).with_context("an earlier try: " + drop));
      }
      co_return agent;
    }
  }
}

Task<void> connect_one(Attempt& attempt, const Tools& tools, StartWatch* watch, std::size_t index) {
  attempt.on_phase = [&attempt, watch, index](transport::Phase phase) {
    attempt.enter(phase);
    if (watch != nullptr) watch->enter(index, phase);
  };
  auto agent = co_await connect_host(attempt, tools);
  attempt.leave();
  if (agent) {
    attempt.agent = std::move(*agent);
    attempt.agent->start();
    if (watch != nullptr) watch->agent_ready(index, attempt.agent->hello());
  } else {
    attempt.error = std::move(agent.error());
    if (!attempt.host.where.empty())
      attempt.error = std::move(attempt.error).with_context("named in " + attempt.host.where);
    if (!attempt.host.job.empty() && !attempt.local && tools.options.launch_agent.empty()) {
      attempt.error = std::move(attempt.error)
                          .with_context("drun reaches the hosts of " + attempt.host.job +
                                        " by ssh, which the cluster must allow within a job");
    }
    if (watch != nullptr) watch->failed(index, attempt.error);
  }
}

std::unique_ptr<transport::Transport> make_transport(asio::io_context& io, asio::thread_pool& helper,
                                                     const ConnectOptions& options, Reporter& reporter) {
  if (options.use_openssh || !options.launch_agent.empty()) {
    return transport::make_openssh_transport(io, options.launch_agent, options.ssh.config_file);
  }
  return transport::make_libssh_transport(
      io, helper, [&reporter](const std::string& text) { reporter.note(text); },
      std::max<std::chrono::milliseconds>(kShortestSilence, options.heartbeat_timeout + kMoreSilence));
}

Task<void> close_agent(std::unique_ptr<AgentChannel> agent) { co_await agent->end(); }

// The names under which a Hello says where its agent runs.
struct Claim {
  explicit Claim(const control::Hello& hello)
      : network(hello.boot_id + "|" + hello.net_namespace), machine(hello.identity()) {}
  std::string network, machine;
};

// The index of the agent on the same machine, -1: none. One whose claim proves wrong is set apart: a host that lies,
// or a copy of a virtual machine.
Task<int> find_same_machine(AgentChannel& agent, const std::vector<std::unique_ptr<AgentChannel>>& agents,
                            const std::vector<Claim>& claims, const Tools& tools, Reporter& reporter) {
  const Claim own(agent.hello());
  const AgentChannel* wrong = nullptr;
  bool is_proven = false;
  for (std::size_t i = 0; i < agents.size(); ++i) {
    if (own.network != claims[i].network) continue;
    const Deadline until = std::min(tools.deadline, Clock::now() + kProofTime);
    const bool is_true = co_await share_loopback(agent, *agents[i], until);
    if (!is_true) {
      wrong = agents[i].get();
      continue;
    }
    is_proven = true;
    agent.set_net_namespace(agents[i]->hello().net_namespace);
    if (own.machine == claims[i].machine) co_return static_cast<int>(i);
  }
  if (wrong == nullptr || is_proven) co_return -1;
  agent.set_net_namespace(agent.hello().net_namespace + " of " + agent.name());
  if (!agent.lost() && !wrong->lost()) {
    reporter.warning(agent.name() + " and " + wrong->name() +
                     " say that they are one machine, but do not reach each other on loopback: they count as two");
  }
  co_return -1;
}

// Two names of one machine are one host: its slots are added.
Task<void> merge(std::vector<Attempt>& attempts, const Tools& tools, Reporter& reporter, TaskGroup& closing,
                 Connected& out) {
  std::vector<Claim> claims;  // by agent
  for (auto& attempt : attempts) {
    if (!attempt.agent) continue;
    const Claim claim(attempt.agent->hello());
    const int again = co_await find_same_machine(*attempt.agent, out.agents, claims, tools, reporter);
    if (attempt.local) out.head = again >= 0 ? again : static_cast<int>(out.agents.size());
    if (again < 0) {
      out.agents.push_back(std::move(attempt.agent));
      out.times.push_back(std::move(attempt.times));
      claims.push_back(claim);
      continue;
    }
    auto& first = *out.agents[static_cast<std::size_t>(again)];
    first.add_slots(attempt.host);
    reporter.note(attempt.host.name + " and " + first.name() + " are the same machine: it has " +
                  plural(static_cast<std::size_t>(first.host().slots), "slot") + " now");
    closing.spawn(close_agent(std::move(attempt.agent)));
  }
}

}  // namespace

Task<Connected> connect_hosts(asio::io_context& io, asio::thread_pool& helper, AgentChannels& group,
                              std::vector<Host> hosts, ConnectOptions options, Reporter& reporter, StartWatch* watch) {
  Connected out;
  Result<AgentBinary> agent = AgentBinary();
  if (options.transport == nullptr) agent = find_agent_binary(options.agent_program);
  if (!agent) {
    out.errors.push_back(std::move(agent.error()));
    co_return out;
  }
  const OwnIdentity own = own_identity();
  std::vector<Attempt> attempts;
  for (const auto& host : hosts) {
    auto target = transport::resolve_ssh_target(host, options.ssh);
    if (!target) {
      out.errors.push_back(std::move(target.error()));
      continue;
    }
    Attempt attempt;
    attempt.host = host;
    attempt.target = std::move(*target);
    attempt.local = is_local(host, attempt.target, own);
    attempts.push_back(std::move(attempt));
  }
  if (!out.errors.empty()) co_return out;
  const bool needs_binary = std::any_of(attempts.begin(), attempts.end(), [](const Attempt& a) { return !a.local; });
  if (needs_binary && options.transport == nullptr) {
    if (auto ok = load_agent_binary(*agent); !ok) {
      out.errors.push_back(std::move(ok.error()));
      co_return out;
    }
  }

  std::unique_ptr<transport::Transport> ssh;
  if (options.transport == nullptr) ssh = make_transport(io, helper, options, reporter);
  transport::Transport& transport = options.transport != nullptr ? *options.transport : *ssh;
  const Tools tools{io, group, transport, std::move(*agent), options, Clock::now() + options.start_timeout, reporter};
  TaskGroup tasks(io.get_executor());
  if (watch != nullptr) {
    std::vector<std::string> names;
    for (const auto& attempt : attempts) names.push_back(attempt.host.name);
    watch->begin(Stage::kConnect, std::move(names));
  }
  for (std::size_t i = 0; i < attempts.size(); ++i) tasks.spawn(connect_one(attempts[i], tools, watch, i));
  co_await tasks.join();
  if (watch != nullptr) watch->end();

  for (auto& attempt : attempts) {
    if (!attempt.agent) out.errors.push_back(std::move(attempt.error));
  }
  if (out.errors.empty() || options.keep_reachable) {
    co_await merge(attempts, tools, reporter, tasks, out);
  } else {
    for (auto& attempt : attempts) {
      if (attempt.agent) tasks.spawn(close_agent(std::move(attempt.agent)));
    }
  }
  co_await tasks.join();
  co_return out;
}

}  // namespace drun::launcher
