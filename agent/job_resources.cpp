#include "agent/job_resources.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "agent/exit_evidence.h"

namespace drun::agent {

namespace {
constexpr std::chrono::seconds kSweepTime{5};
constexpr std::chrono::milliseconds kCgroupTime{500};

std::string error_file_name(std::uint32_t rank) { return "rank." + std::to_string(rank) + ".error"; }
}  // namespace

JobResources::JobResources(asio::io_context& io, GuardWatch& guard)
    : io_(io), guard_(guard), tasks_(io.get_executor()) {}

Result<void> JobResources::open_socket() {
  if (socket_) return {};
  auto socket = WorkerSocket::create(io_, job_id_);
  if (!socket) return fail(std::move(socket.error()));
  socket_ = std::move(*socket);
  guard_.announce('J', job_id_);
  guard_.announce('S', socket_->directory());
  tasks_.spawn(socket_->run());
  return {};
}

void JobResources::make_cgroup(const CgroupFiles& files) {
  const auto announce = [this](const std::string& directory) { return guard_.announce('C', directory); };
  auto made = JobCgroup::create(files, job_id_, announce);
  if (made) cgroup_ = std::move(*made);
}

void JobResources::hand_out(const control::Spawn& order, Recorders& recorders,
                            const std::function<void(std::string)>& warn) {
  if (!socket_) return;
  socket_->set_handout(order.handout);
  if (order.workers.size() > 1) {
    socket_->share_memory([warn](const Error& error) {
      warn("no shared memory for its workers: " + error.message() + "; all ranks use the network, which is slower");
    });
  }
  socket_->record(recorders);
}

void JobResources::add_to(WorkerStart& start, std::uint32_t rank) const {
  if (socket_) {
    start.environment["DRUN_AGENT"] = socket_->path();
    start.environment.emplace("TORCHELASTIC_ERROR_FILE", error_file(rank));
  }
  if (cgroup_) start.cgroup_procs = cgroup_->procs_fd();
}

std::string JobResources::read_error_file(std::uint32_t rank) const {
  return socket_ ? agent::read_error_file(socket_->directory_fd(), error_file_name(rank)) : "";
}

std::string JobResources::error_file(std::uint32_t rank) const {
  return socket_ ? socket_->file(error_file_name(rank)) : "";
}

Swept JobResources::end_processes(const Reaped& reaped) {
  JobMark mark;
  mark.job_id = job_id_;
  if (socket_) mark.agent_socket = socket_->path();
  std::size_t n_before = 0;
  if (cgroup_) {
    n_before = descendants().size();
    kill_cgroup(cgroup_->directory());
  }
  // Both block: together they must stay below kGuardSilenceLimit.
  SweepLimits limits;
  limits.deadline = Clock::now() + kSweepTime;
  Swept swept = sweep(limits, reaped, mark);
  swept.n_killed = std::max(swept.n_killed, n_before);
  guard_.beat();
  const auto now = Clock::now();
  const Deadline end = swept.stuck.empty() ? std::max(limits.deadline, now + kCgroupTime) : now;
  if (cgroup_) remove_cgroup(cgroup_->directory(), end);
  if (socket_ && !swept.stuck.empty()) socket_->keep_directory();
  return swept;
}

void JobResources::stop() {
  if (socket_) socket_->stop();
}

}  // namespace drun::agent
