// The start of a job: everything before its workers run.
#include <sodium.h>

#include <algorithm>
#include <utility>

#include "base/exit_status.h"
#include "base/fd.h"
#include "base/text.h"
#include "launcher/plan/host_item.h"
#include "launcher/run/job_phases.h"

namespace drun::launcher {

namespace {

// An agent may have no time left because another host took it all.
Error late(Error error) {
  if (error.code != Errc::kTimeout || !error.hint.empty()) return error;
  return std::move(error).with_hint("slow hosts: raise --start-timeout");
}

// The number of workers on a host with a slot for each GPU; a number of slots in the list may make it smaller. 0: none.
// `visible`: CUDA_VISIBLE_DEVICES of its workers; nullptr if it isn't set.
int gpu_slots(const Host& host, std::size_t n_gpus, const std::string* visible) {
  if (!host.gpus.empty()) {
    n_gpus = host.gpus.size();
  } else if (visible != nullptr) {
    n_gpus = visible->empty() ? 0 : std::min(n_gpus, split(*visible, ',').size());
  }
  if (host.slots_given) n_gpus = std::min(n_gpus, static_cast<std::size_t>(host.slots));
  return static_cast<int>(std::min(n_gpus, static_cast<std::size_t>(kMaxSlots)));
}

// The machines with their slots.
Result<std::vector<Host>> machines_of(const Connected& connected, const JobOptions& options) {
  std::vector<Host> out;
  for (std::size_t i = 0; i < connected.agents.size(); ++i) {
    Host host = connected.agents[i]->host();
    if (options.slot_per_gpu) {
      // Other hosts' workers don't get drun's CUDA_VISIBLE_DEVICES.
      const auto visible = options.own_env.find("CUDA_VISIBLE_DEVICES");
      const bool is_seen = static_cast<int>(i) == connected.head && visible != options.own_env.end();
      host.slots = gpu_slots(host, connected.agents[i]->hello().n_gpus, is_seen ? &visible->second : nullptr);
      if (host.slots == 0) {
        return fail(Error(Errc::kUsage, "--nproc-per-node gpu", host.name + " has no NVIDIA GPU that its workers see")
                        .with_hint("leave " + host.name + " out, or write the number, as --nproc-per-node 8"));
      }
    }
    out.push_back(std::move(host));
  }
  return out;
}

}  // namespace

std::string make_job_id() {
  std::string bytes(8, '\0');
  randombytes_buf(bytes.data(), bytes.size());
  return hex(bytes);
}

int Job::open_files() {
  if (!options_.events_file.empty()) {
    if (auto open = events_.open(options_.events_file); !open) return report(open.error());
  }
  if (!options_.timeline_file.empty()) {
    if (auto open = timeline_.open(options_.timeline_file); !open) return report(open.error());
  }
  return kExitOk;
}

Task<int> Job::connect() {
  // Bad placement shows before anything is connected; two names of one machine only afterwards.
  auto planned = place(options_.hosts, options_.slot_per_gpu ? 0 : options_.np);
  if (!planned) co_return report(planned.error());
  auto enough_files = check_open_files(files_of(*planned), raise_open_file_limit());
  if (!enough_files) co_return report(enough_files.error());
  if (!options_.slot_per_gpu) report_events(*planned, options_.hosts);
  tasks_.spawn(watch_.draw());

  options_.connect.grace = options_.grace;
  options_.connect.heartbeat_timeout = options_.heartbeat_timeout;
  connected_ =
      co_await connect_hosts(io_, helper_.get(), channels_, options_.hosts, options_.connect, reporter_, &watch_);
  if (!connected_.errors.empty()) co_return report(connected_.errors);
  const auto machines = machines_of(connected_, options_);
  if (!machines) co_return report(machines.error());
  auto placed = place(*machines, options_.np);
  if (!placed) co_return report(placed.error());
  if (options_.slot_per_gpu) report_events(*placed, *machines);
  plan_.job_id = job_id_;
  plan_.placement = std::move(*placed);
  for (const int index : plan_.placement.host_indices) {
    hosts_.push_back(connected_.agents[static_cast<std::size_t>(index)].get());
  }
  attach();
  configure_agents();
  co_return kExitOk;
}

OpenFiles Job::files_of(const Placement& placement) const {
  OpenFiles files;
  files.n_hosts = placement.host_indices.size();
  files.n_workers = static_cast<std::size_t>(placement.size);
  files.has_output_files = !options_.output.directory.empty();
  files.serves_horovod = options_.env.real_horovod;
  return files;
}

void Job::configure_agents() {
  HeartbeatTimes beats;
  beats.timeout = options_.heartbeat_timeout;
  beats.interval = std::min(beats.interval, beats.timeout / 4);
  beats.warn = std::min(beats.warn, beats.timeout / 2);
  for (AgentChannel* host : hosts_) {
    host->on([this](AgentChannel& from, control::Frame frame) { on_frame(from, std::move(frame)); },
             [this](AgentChannel& from, const Error& error) {
               timeline_.host_lost();
               supervisor_.on_lost(from, error);
             },
             [this](AgentChannel& from, std::chrono::seconds silence) {
               reporter_.warning(from.name() + ": silent for " + std::to_string(silence.count()) + " s");
             });
    host->set_times(beats);
    control::Configure configure;
    configure.job_id = job_id_;
    configure.heartbeat_ms = static_cast<std::uint32_t>(beats.interval.count());
    configure.heartbeat_timeout_ms = static_cast<std::uint32_t>(beats.timeout.count());
    configure.grace_ms = static_cast<std::uint32_t>(options_.grace.count());
    host->send(control::Type::kConfigure, control::encode(configure));
  }
}

// Gives the supervisor what it needs, except for the rendezvous.
void Job::attach() {
  Supervisor::Parts parts;
  parts.hosts = hosts_;
  parts.placement = plan_.placement;
  parts.output = &output_.writer();
  parts.events = &events_;
  parts.started = [this](const control::Started& m) { joins_.on_started(m); };
  parts.exited = [this](const control::Exited& m) { joins_.on_exited(m); };
  parts.stdin_taken = [this](int rank, std::uint64_t n_bytes) {
    if (input_) input_->on_taken(rank, n_bytes);
  };
  supervisor_.attach(std::move(parts));
}

Task<int> Job::choose_network() {
  std::optional<NetworkProbe> known;
  if (options_.examine_hosts) {
    const int status = co_await check_hosts_first(&known);
    if (status != kExitOk) co_return status;
  }
  auto found = co_await network_.find(hosts_, head_index(), options_.interfaces, std::move(known), start_deadline_);
  if (!found) co_return report(late(std::move(found.error())));
  put_rank_0_where_all_reach_it();
  plan_.network = network_.choice();
  for (const AgentChannel* host : hosts_) {
    plan_.host_names.push_back(host->name());
    plan_.n_cpus.push_back(static_cast<int>(host->hello().n_cpus));
  }
  co_return kExitOk;
}

Task<int> Job::check_hosts_first(std::optional<NetworkProbe>* network) {
  const auto began = Clock::now();
  const int status = co_await options_.examine_hosts(io_, hosts_, head_index(), reporter_, network);
  start_deadline_ += Clock::now() - began;
  if (status != kExitOk) why_not_started_ = "--check found that the hosts are not ready";
  co_return status;
}

// MASTER_ADDR is rank 0's host, so every other host must reach it. Else the first host that all reach gets the first
// ranks.
void Job::put_rank_0_where_all_reach_it() {
  const int host = network_.reached_by_all();
  if (host == 0) return;
  const std::string why = "not every host can connect to " + hosts_.front()->name();
  if (host < 0) {
    reporter_.warning(why + ", where MASTER_ADDR is, nor to any other: torch can't start");
    return;
  }
  const std::string& name = hosts_[static_cast<std::size_t>(host)]->name();
  reporter_.warning(why + ": rank 0 and MASTER_ADDR are on " + name + "; put " + name + " first in the list of hosts");
  plan_.placement = led_by(plan_.placement, host);
  std::rotate(hosts_.begin(), hosts_.begin() + host, hosts_.begin() + host + 1);
  network_.move_to_front(host);
  supervisor_.place(hosts_, plan_.placement);
}

int Job::head_index() const {
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (is_head(i)) return static_cast<int>(i);
  }
  return -1;
}

int Job::start_rendezvous() {
  rendezvous::ServerEvents events;
  events.joined = [this](int rank, int pid) {
    supervisor_.on_joined(rank);
    joins_.on_joined(rank, pid);
  };
  events.complained = [this](int rank, const std::string& text) { supervisor_.on_complaint(rank, text); };
  events.abort_requested = [this](const rendezvous::Abort& abort) { supervisor_.on_abort_requested(abort); };
  auto started = rendezvous_.start(hosts_, head_index(), plan_.placement, plan_.network, files_of(plan_.placement),
                                   std::move(events));
  if (!started) return report(started.error());
  expect_workers();
  return kExitOk;
}

void Job::expect_workers() {
  activity_.expect(hosts_);
  if (timeline_.is_open()) timeline_.expect(hosts_, supervisor_.ranks(), began_ns_);
  joins_.expect(rendezvous_.server());
  if (options_.stdin_mode == StdinMode::kNone) return;
  std::vector<int> readers;
  for (const auto& place : plan_.placement.ranks) {
    if (options_.stdin_mode == StdinMode::kAll || place.rank == options_.stdin_rank) readers.push_back(place.rank);
  }
  input_ = std::make_unique<WorkerInput>(io_, reporter_, supervisor_, hosts_, plan_.placement, readers);
}

Task<int> Job::prepare() {
  std::vector<std::vector<Error>> errors(hosts_.size());
  plan_.bindings.resize(hosts_.size());
  TaskGroup group(io_.get_executor());
  watch_.begin(Stage::kPrepare, plan_.host_names);
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    watch_.enter(i, transport::Phase::kPrepare);
    group.spawn(prepare_host(i, errors[i]));
  }
  co_await group.join();
  watch_.end();
  std::vector<Error> all;
  for (auto& list : errors) {
    for (auto& e : list) all.push_back(std::move(e));
  }
  if (!all.empty()) co_return report(all);
  plan_.key = rendezvous_.key();
  plan_.handouts = rendezvous_.handouts();
  plan_.horovod = rendezvous_.horovod_routes();
  co_return kExitOk;
}

Task<void> Job::prepare_host(std::size_t host, std::vector<Error>& errors) {
  auto route = co_await rendezvous_.choose_route(host, start_deadline_);
  if (!route) {
    errors.push_back(late(std::move(route.error())));
    co_return;
  }
  control::Prepare order = prepare_order(options_, plan_, host, is_head(host));
  order.time_ms = time_of_agent(left_until(start_deadline_));
  std::string body = control::encode(order);
  if (body.size() >= control::kMaxFrame) {
    errors.push_back(Error(Errc::kUsage, "environment and command", "larger than 16 MiB"));
    co_return;
  }
  auto reply = co_await hosts_[host]->request(control::Type::kPrepare, std::move(body), control::Type::kPrepared,
                                              "prepare", start_deadline_);
  if (!reply) {
    errors.push_back(late(std::move(reply.error())));
    co_return;
  }
  watch_.done(host);
  auto prepared = control::decode<control::Prepared>(reply->body);
  if (!prepared) {
    errors.push_back(std::move(prepared.error()).with_subject(hosts_[host]->name()));
    co_return;
  }
  if (host == 0) plan_.master_port = prepared->master_port;
  errors = errors_of(*prepared, hosts_[host]->name());
  plan_.bindings[host] = std::move(prepared->bindings);
}

void Job::report_events(const Placement& planned, const std::vector<Host>& on) {
  std::vector<Events::JobHost> hosts;
  for (std::size_t i = 0; i < planned.host_indices.size(); ++i) {
    Events::JobHost host;
    host.name = on[static_cast<std::size_t>(planned.host_indices[i])].name;
    host.n_workers = planned.local_sizes[i];
    hosts.push_back(std::move(host));
  }
  events_.job_begun(job_id_, options_.command, planned.size, hosts);
}

}  // namespace drun::launcher
