#include "agent/host_queries.h"

#include <signal.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <utility>
#include <vector>

#include "agent/clean.h"

namespace drun::agent {

using control::Type;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr seconds kCleanTime{20};  // added to the grace time
constexpr seconds kRasTime{15};    // for NCCL to ask all of its ranks

// Reads until EOF or the deadline. False: the deadline passed.
Task<bool> read_all(asio::posix::stream_descriptor& from, Deadline deadline, std::string& bytes) {
  const std::function<void()> cancel = [&from] {
    boost::system::error_code ignored;
    from.cancel(ignored);
  };
  DeadlineGuard limit(from.get_executor(), deadline, cancel);
  std::string chunk(64u << 10, '\0');
  for (;;) {
    const auto buffer = asio::buffer(chunk);
    const auto [ec, n] = co_await from.async_read_some(buffer, as_result);
    if (ec) break;
    bytes.append(chunk, 0, n);
  }
  co_return !limit.fired();
}

}  // namespace

HostQueries::HostQueries(asio::io_context& io, control::FrameQueue& to_drun, const WorkerGroup& workers)
    : io_(io), to_drun_(to_drun), workers_(workers), tasks_(io.get_executor()) {}

void HostQueries::describe(const control::Describe& order, const Environment& environment) {
  if (!snapshots_) {
    const auto path = environment.find("PATH");
    snapshots_ = std::make_unique<SnapshotReader>(io_, path != environment.end() ? path->second : "");
  }
  if (is_ending_) snapshots_->stop();
  std::vector<SnapshotReader::Subject> subjects;
  for (const auto& [rank, worker] : workers_.workers()) {
    SnapshotReader::Subject subject;
    subject.rank = rank;
    subject.pid = worker.pid;
    subject.running = worker.running;
    subject.wait_status = worker.wait_status;
    subjects.push_back(subject);
  }
  const SnapshotReader::Send reply = [this](const control::Described& m) {
    to_drun_.push(Type::kDescribed, control::encode(m));
  };
  const Deadline deadline = Clock::now() + milliseconds(order.stacks_ms);
  tasks_.spawn(snapshots_->describe(std::move(subjects), order.stacks_ms > 0, deadline, reply));
}

void HostQueries::ask_facts(control::AskFacts order) {
  if (facts_ || is_ending_) return;
  const auto path = order.environment.find("PATH");
  const char* own_path = std::getenv("PATH");
  const std::string folders = path != order.environment.end() ? path->second : own_path != nullptr ? own_path : "";
  facts_ = std::make_unique<FactsGatherer>(io_, folders);
  tasks_.spawn(send_facts(std::move(order)));
}

Task<void> HostQueries::send_facts(control::AskFacts order) {
  control::Facts reply;
  reply.facts = co_await facts_->gather(std::move(order));
  facts_.reset();
  to_drun_.push(Type::kFacts, control::encode(reply));
}

void HostQueries::ask_ras(const Environment& environment) {
  const auto& workers = workers_.workers();
  if (ras_ || is_ending_ || workers.empty()) return;
  std::string address;  // drun's, or the user's
  for (const auto* variables : {&environment, &workers.begin()->second.spec.environment}) {
    if (const auto found = variables->find("NCCL_RAS_ADDR"); found != variables->end()) address = found->second;
  }
  ras_ = std::make_unique<NcclRasClient>(io_.get_executor());
  tasks_.spawn(send_ras(std::move(address)));
}

Task<void> HostQueries::send_ras(std::string address) {
  control::Text reply;
  reply.text = co_await ras_->ask(std::move(address), Clock::now() + kRasTime);
  ras_.reset();
  if (!reply.text.empty() && !is_ending_) to_drun_.push(Type::kRas, control::encode(reply));
}

void HostQueries::clean(control::Clean order, pid_t guard) { tasks_.spawn(send_cleaned(std::move(order), guard)); }

Task<void> HostQueries::send_cleaned(control::Clean order, pid_t guard) {
  auto child = start_clean(order, guard);
  control::Cleaned failed;
  if (!child) {
    failed.error = child.error().message();
    to_drun_.push(Type::kCleaned, control::encode(failed));
    co_return;
  }
  asio::posix::stream_descriptor reply(io_, child->reply.release());
  const Deadline give_up = Clock::now() + milliseconds(order.grace_ms) + kCleanTime;
  std::string body;
  const bool in_time = co_await read_all(reply, give_up, body);
  if (!in_time) {
    ::kill(child->pid, SIGKILL);
    failed.error = "reading /proc took too long: a process may be stuck in the kernel (ps axl)";
    body = control::encode(failed);
  } else if (!control::decode<control::Cleaned>(body)) {
    failed.error = "reading /proc failed";
    body = control::encode(failed);
  }
  to_drun_.push(Type::kCleaned, body);
}

void HostQueries::reaped(pid_t pid) {
  if (snapshots_) snapshots_->reaped(pid);
  if (facts_) facts_->reaped(pid);
}

void HostQueries::end() {
  is_ending_ = true;
  if (snapshots_) snapshots_->stop();
  if (facts_) facts_->stop();
  if (ras_) ras_->stop();
}

}  // namespace drun::agent
