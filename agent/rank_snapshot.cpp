#include "agent/rank_snapshot.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <deque>

#include "agent/process_list.h"
#include "base/fd.h"
#include "base/text.h"

namespace drun::agent {

namespace {

constexpr std::size_t kMaxProcesses = 8;  // per rank
constexpr std::size_t kMaxOutput = 64u << 10;
constexpr int kToolsAtOnce = 4;
constexpr const char* kMaxFrames = "64";

// The kernel function that the process sleeps in, else the number of its system call, else nothing.
std::string where_it_waits(pid_t pid) {
  if (const auto wchan = read_file(proc_file(pid, "wchan"), 4096); wchan && !wchan->empty() && *wchan != "0") {
    // Kernels that hide symbols show the name of the entry point, which says nothing.
    if (!starts_with(*wchan, "do_syscall_64") && !starts_with(*wchan, "entry_SYSCALL")) return *wchan;
  }
  const auto call = read_file(proc_file(pid, "syscall"), 4096);
  if (!call || call->empty() || std::isdigit(static_cast<unsigned char>((*call)[0])) == 0) return "";
  return "system call " + call->substr(0, call->find(' '));
}

bool is_python(pid_t pid) {
  char target[4096];
  const ssize_t n = ::readlink(proc_file(pid, "exe").c_str(), target, sizeof target);
  if (n <= 0) return false;
  const std::string path(target, static_cast<std::size_t>(n));
  return starts_with(path.substr(path.rfind('/') + 1), "python");
}

// True for a shell or wrapper that only waits for its child: its stack shows nothing.
bool waits_for_child(const control::ProcessState& process) {
  constexpr const char* kWait4 = "system call 61";
  constexpr const char* kWaitid = "system call 247";
  return process.waits_in == "do_wait" || process.waits_in == kWait4 || process.waits_in == kWaitid;
}

std::string first_line(const std::string& text) {
  for (const auto line : split(text, '\n')) {
    if (const auto words = trim(line); !words.empty()) return std::string(words.substr(0, 300));
  }
  return "";
}

bool has_frames(const std::string& text) {
  return text.find("#0") != std::string::npos || text.find("\nThread ") != std::string::npos;
}

}  // namespace

ProcessTable ProcessTable::read() {
  ProcessTable out;
  for_each_pid([&](pid_t pid) {
    auto stat = stat_of(pid);
    if (!stat) return true;
    control::ProcessState state;
    state.pid = pid;
    state.name = std::move(stat->name);
    state.state = stat->state;
    state.cpu_ms = stat->cpu * 1000 / ticks_per_second();
    out.children_.emplace(stat->parent, pid);
    out.processes_.emplace(pid, std::move(state));
    return true;
  });
  return out;
}

std::vector<control::ProcessState> ProcessTable::family_of(pid_t worker) const {
  std::vector<control::ProcessState> out;
  if (const auto own = processes_.find(worker); own != processes_.end()) out.push_back(own->second);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto [first, last] = children_.equal_range(out[i].pid);
    for (auto child = first; child != last && out.size() < kMaxProcesses; ++child) {
      out.push_back(processes_.at(child->second));
    }
  }
  for (auto& process : out) process.waits_in = where_it_waits(process.pid);
  return out;
}

namespace {

// The command by which that tool (a path) prints the stacks of the process.
std::vector<std::string> stack_command(const std::string& tool, pid_t pid) {
  const std::string number = std::to_string(pid);
  if (tool.ends_with("/py-spy")) return {tool, "dump", "--pid", number};
  if (tool.ends_with("/eu-stack")) return {tool, "-n", kMaxFrames, "-p", number};
  return {tool, "-nx", "-batch", "-p", number, "-ex", std::string("thread apply all bt ") + kMaxFrames};
}

}  // namespace

Task<void> SnapshotReader::read_stack(control::ProcessState& process, Deadline deadline) {
  std::vector<std::string> names = {"eu-stack", "gdb"};
  if (is_python(process.pid)) names.insert(names.begin(), "py-spy");
  const FoundTool found = co_await tools_.find(std::move(names), deadline);
  if (found.path.empty()) {
    process.problem =
        found.problem.empty() ? "neither eu-stack nor gdb is there (Debian: apt-get install elfutils)" : found.problem;
    co_return;
  }
  const std::vector<std::string> tool = stack_command(found.path, process.pid);
  std::map<std::string, std::string> environment;
  environment["PATH"] = "/usr/local/bin:/usr/bin:/bin";
  environment["LC_ALL"] = "C";
  environment["HOME"] = "/";
  const ToolOutput output = co_await tools_.run(tool, std::move(environment), deadline, kMaxOutput);
  if (!output.problem.empty()) {
    process.problem = output.problem;
    co_return;
  }
  const std::string name = tool[0].substr(tool[0].rfind('/') + 1);
  if (has_frames(output.text)) {
    process.stack = output.text;
  } else if (output.late) {
    process.problem = name + " did not finish in time";
  } else {
    process.problem = name + ": " + (output.text.empty() ? "it printed nothing" : first_line(output.text));
  }
}

// Shared by the take_turns() coroutines of one describe().
struct SnapshotReader::Question {
  std::deque<Subject> queue;
  ProcessTable processes;
  bool stacks = false;
  Deadline deadline;
  Send send;
};

Task<void> SnapshotReader::take_turns(Question& question) {
  while (!question.queue.empty()) {
    const Subject subject = question.queue.front();
    question.queue.pop_front();
    control::Described out;
    out.rank = subject.rank;
    out.pid = subject.pid;
    out.running = subject.running;
    out.wait_status = subject.wait_status;
    if (subject.running) out.processes = question.processes.family_of(subject.pid);
    for (auto& process : out.processes) {
      const bool parent_that_waits = out.processes.size() > 1 && waits_for_child(process);
      if (!question.stacks || parent_that_waits || process.state == 'Z' || process.state == 'X') continue;
      if (tools_.stopped() || Clock::now() >= question.deadline) {
        process.problem = "there was no time left to read it";
        continue;
      }
      co_await read_stack(process, question.deadline);
    }
    question.send(out);
  }
}

Task<void> SnapshotReader::describe(std::vector<Subject> subjects, bool stacks, Deadline deadline, Send send) {
  Question question;
  question.queue.assign(subjects.begin(), subjects.end());
  question.processes = ProcessTable::read();
  question.stacks = stacks;
  question.deadline = deadline;
  question.send = std::move(send);
  TaskGroup group(io_.get_executor());
  for (int i = 0; i < kToolsAtOnce; ++i) group.spawn(take_turns(question));
  co_await group.join();
}

}  // namespace drun::agent
