#include "agent/host_queries.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <utility>
#include <vector>

#include "agent/clean.h"
#include "agent/own_name.h"

namespace drun::agent {

using control::Type;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr seconds kCleanTime{20};  // added to the grace time
constexpr seconds kRasTime{15};    // for NCCL to ask all of its ranks
constexpr seconds kNameTime{5};    // for a name server

std::string path_in(const HostQueries::Environment& environment) {
  const auto path = environment.find("PATH");
  return path != environment.end() ? path->second : "";
}

}  // namespace

HostQueries::HostQueries(asio::io_context& io, control::FrameQueue& to_drun, const WorkerGroup& workers)
    : io_(io), to_drun_(to_drun), workers_(workers), cleaning_(io), tasks_(io.get_executor()) {}

void HostQueries::describe(const control::Describe& order, const Environment& environment) {
  if (!snapshots_) {
    snapshots_ = std::make_unique<SnapshotReader>(io_, path_in(environment));
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
  const char* own_path = std::getenv("PATH");
  const bool has_path = order.environment.count("PATH") > 0;
  const std::string folders = has_path || own_path == nullptr ? path_in(order.environment) : own_path;
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

void HostQueries::check_own_name(const Environment& environment) {
  if (name_tools_ || is_ending_) return;
  name_tools_ = std::make_unique<Tools>(io_, path_in(environment));
  tasks_.spawn(send_own_name(environment));
}

Task<void> HostQueries::send_own_name(Environment environment) {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) co_return;
  std::string own = name.data();
  const Deadline deadline = Clock::now() + kNameTime;
  const ToolOutput output = co_await ask_own_name(*name_tools_, std::move(own), std::move(environment), deadline);
  control::Text notice;
  notice.text = own_name_warning(output.text);
  if (!notice.text.empty() && !is_ending_) to_drun_.push(Type::kNotice, control::encode(notice));
}

void HostQueries::clean(control::Clean order, pid_t guard) { tasks_.spawn(send_cleaned(std::move(order), guard)); }

Task<void> HostQueries::send_cleaned(control::Clean order, pid_t guard) {
  const ForkedFunction clean = [&order, guard](const ReportStep&) {
    return control::encode(agent::clean(order, guard));
  };
  const ForkedResult result = co_await cleaning_.call(clean, Clock::now() + milliseconds(order.grace_ms) + kCleanTime);
  control::Cleaned failed;
  failed.error = result.late ? "reading /proc took too long: a process may be stuck in the kernel (ps axl)"
                             : "reading /proc failed: " + result.problem;
  to_drun_.push(Type::kCleaned, result.value.value_or(control::encode(failed)));
}

void HostQueries::reaped(pid_t pid) {
  cleaning_.reaped(pid);
  if (snapshots_) snapshots_->reaped(pid);
  if (facts_) facts_->reaped(pid);
  if (name_tools_) name_tools_->reaped(pid);
}

void HostQueries::end() {
  is_ending_ = true;
  cleaning_.stop();
  if (snapshots_) snapshots_->stop();
  if (facts_) facts_->stop();
  if (ras_) ras_->stop();
  if (name_tools_) name_tools_->stop();
}

}  // namespace drun::agent
