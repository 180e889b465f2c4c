#include "launcher/run/rank_snapshots.h"

#include <sys/wait.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "base/clean_text.h"
#include "base/text.h"
#include "base/units.h"
#include "launcher/plan/rank_list.h"
#include "launcher/report/signal_text.h"

namespace drun::launcher {

namespace {

using std::chrono::milliseconds;

constexpr auto kAnswerTime = milliseconds(2000);  // for the agents' answers, in addition to the time for the stacks
constexpr std::size_t kMaxFrames = 40;            // shown per thread
constexpr std::size_t kMaxStacks = 24;            // different ones

std::string state_words(const control::ProcessState& p) {
  const std::string in = p.waits_in.empty() ? "" : " in " + p.waits_in;
  switch (p.state) {
    case 'R':
      return "runs";
    case 'S':
    case 'I':
      return "sleeps" + in;
    case 'D':
      return "waits" + in + " and can't be interrupted";
    case 'T':
      return "is stopped by a signal";
    case 't':
      return "is stopped by a debugger";
    case 'Z':
    case 'X':
      return "has ended";
    default:
      return "is in state " + clean_line({&p.state, 1});
  }
}

std::string process_words(const control::ProcessState& p) {
  return "pid " + std::to_string(p.pid) + " (" + p.name + ") " + state_words(p) + ", " +
         time_text(milliseconds(p.cpu_ms)) + " of CPU";
}

constexpr const char* kPySpy = " (pip install py-spy there shows the lines of Python)";

// `tells_joined`: at least one rank has joined the rendezvous, so the program uses libdrun.
std::string rank_words(const RankState& r, bool tells_joined) {
  std::string out = "rank " + std::to_string(r.rank) + " on " + r.host + ": ";
  if (!r.described) return out + "no answer from its agent";
  const auto& d = *r.described;
  if (!d.running) return out + (d.pid == 0 ? "was not started" : end_text(d.wait_status));
  for (std::size_t i = 0; i < d.processes.size(); ++i) {
    out += (i == 0 ? "" : "; ") + process_words(d.processes[i]);
  }
  if (d.processes.empty()) out += "running, pid " + std::to_string(d.pid);
  if (tells_joined) out += r.joined ? "; joined" : "; has not joined";
  return out;
}

std::string_view skip_hex(std::string_view s) {
  if (!starts_with(s, "0x")) return s;
  std::size_t i = 2;
  while (i < s.size() && std::isxdigit(static_cast<unsigned char>(s[i])) != 0) ++i;
  return trim(s.substr(i));
}

// "#3  0x00007f12 in f<int> (a=0x12) at x.cpp:7" -> "f<int> at x.cpp:7"; "#3 0x00007f12 f@@GLIBC_2.2" -> "f".
std::string plain_frame(std::string_view line) {
  std::size_t i = 1;
  while (i < line.size() && std::isdigit(static_cast<unsigned char>(line[i])) != 0) ++i;
  std::string_view rest = skip_hex(trim(line.substr(i)));
  if (starts_with(rest, "in ")) rest = rest.substr(3);
  std::string out;
  if (const auto arguments = rest.find(" ("); arguments != std::string_view::npos) {
    out = std::string(rest.substr(0, arguments));
    const auto end = rest.rfind(") ");
    if (end != std::string_view::npos && end > arguments) out += std::string(rest.substr(end + 1));
  } else {
    out = std::string(rest);
  }
  if (const auto version = out.find('@'); version != std::string::npos) {
    const auto next = out.find(' ', version);
    out.erase(version, next == std::string::npos ? std::string::npos : next - version);
  }
  return out.empty() ? "??" : out;
}

struct Thread {
  std::string title;  // py-spy's name and state
  std::vector<std::string> frames;
  bool operator==(const Thread& other) const { return title == other.title && frames == other.frames; }
};

std::vector<Thread> threads_of(const std::string& output) {
  std::vector<Thread> out;
  for (const auto raw : split(output, '\n')) {
    const std::string_view line = trim(raw);
    if (starts_with(line, "TID ") || starts_with(line, "Thread ")) {
      out.emplace_back();
      // py-spy: `Thread 0x7F12 (idle): "MainThread"`; gdb: `Thread 1 (Thread 0x7f (LWP 12) "train"):`.
      const auto colon = line.find("): \"");
      if (const auto open = line.find(" ("); colon != std::string_view::npos && open != std::string_view::npos) {
        out.back().title = std::string(line.substr(open + 1));
      }
    } else if (line.size() > 1 && line[0] == '#' && std::isdigit(static_cast<unsigned char>(line[1])) != 0) {
      // gdb shows where the process stopped before the first thread's heading.
      if (out.empty()) continue;
      out.back().frames.push_back(plain_frame(line));
    } else if (!out.empty() && starts_with(raw, "    ") && !line.empty() && !out.back().title.empty()) {
      out.back().frames.emplace_back(line);
    }
  }
  return out;
}

std::string indented(const std::string& text) {
  std::string out;
  for (const auto line : split(text, '\n')) {
    if (!line.empty()) out += "  " + std::string(line) + "\n";
  }
  return out;
}

std::string rank_list(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + ranks_text(ranks);
}

// In the order of first appearance.
struct Group {
  std::string text;
  std::vector<int> ranks;
};

void add(std::vector<Group>& groups, std::string text, int rank) {
  const auto known = std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.text == text; });
  if (known == groups.end()) {
    groups.push_back(Group{std::move(text), {rank}});
  } else if (known->ranks.back() != rank) {
    known->ranks.push_back(rank);
  }
}

}  // namespace

std::string plain_stack(const std::string& output) {
  const std::vector<Thread> threads = threads_of(output);
  std::vector<std::pair<Thread, std::size_t>> folded;
  for (const auto& thread : threads) {
    const auto known = std::find_if(folded.begin(), folded.end(), [&](const auto& f) { return f.first == thread; });
    if (known == folded.end()) {
      folded.emplace_back(thread, 1);
    } else {
      ++known->second;
    }
  }
  std::string out;
  for (const auto& [thread, n] : folded) {
    if (folded.size() > 1 || n > 1 || !thread.title.empty()) {
      out += plural(n, "thread") + (thread.title.empty() ? "" : " " + thread.title) + "\n";
    }
    for (std::size_t i = 0; i < thread.frames.size() && i < kMaxFrames; ++i) {
      out += "#" + std::to_string(i) + " " + thread.frames[i] + "\n";
    }
    if (thread.frames.size() > kMaxFrames) out += "and " + plural(thread.frames.size() - kMaxFrames, "frame") + "\n";
  }
  return out;
}

std::string describe_ranks(const std::vector<RankState>& ranks) {
  std::vector<std::string> lines;
  const bool any_joined = std::any_of(ranks.begin(), ranks.end(), [](const RankState& r) { return r.joined; });
  for (const auto& r : ranks) lines.push_back(rank_words(r, any_joined));
  return join(lines, "\n");
}

std::string describe_stacks(const std::vector<RankState>& ranks) {
  std::vector<Group> stacks, problems;
  for (const auto& r : ranks) {
    if (!r.described) continue;
    for (const auto& p : r.described->processes) {
      if (!p.stack.empty()) add(stacks, p.name + ":\n" + indented(plain_stack(p.stack)), r.rank);
      if (p.problem.empty()) continue;
      const bool is_python = starts_with(p.name, "python");
      add(problems, p.name + ": no stack: " + p.problem + (is_python ? kPySpy : ""), r.rank);
    }
  }
  std::string out;
  for (std::size_t i = 0; i < stacks.size() && i < kMaxStacks; ++i) {
    out += "stack of " + rank_list(stacks[i].ranks) + ", " + stacks[i].text;
  }
  if (stacks.size() > kMaxStacks) out += "and " + plural(stacks.size() - kMaxStacks, "other stack") + "\n";
  for (const auto& g : problems) out += rank_list(g.ranks) + ", " + g.text + "\n";
  if (!out.empty()) out.pop_back();
  return out;
}

Task<std::vector<RankState>> RankSnapshots::ask(std::vector<AgentChannel*> hosts, const Placement& placement,
                                                std::vector<int> joined, milliseconds stacks) {
  for (const auto& place : placement.ranks) {
    RankState r;
    r.rank = place.rank;
    r.host = hosts[static_cast<std::size_t>(place.host)]->name();
    r.joined = std::find(joined.begin(), joined.end(), place.rank) != joined.end();
    ranks_.push_back(std::move(r));
  }
  n_open_ = ranks_.size();
  control::Describe order;
  order.stacks_ms = static_cast<std::uint32_t>(stacks.count());
  for (AgentChannel* host : hosts) {
    if (!host->lost()) host->send(control::Type::kDescribe, control::encode(order));
  }
  const Deadline deadline = Clock::now() + stacks + kAnswerTime;
  while (n_open_ > 0 && !canceled_) {
    const bool in_time = co_await changed_.wait_until(deadline);  // named: GCC 12
    if (!in_time) break;
    changed_.reset();
  }
  co_return std::move(ranks_);
}

void RankSnapshots::take(control::Described message) {
  if (message.rank >= ranks_.size() || ranks_[message.rank].described) return;
  ranks_[message.rank].described = std::move(message);
  --n_open_;
  changed_.notify();
}

void RankSnapshots::cancel() {
  canceled_ = true;
  changed_.notify();
}

}  // namespace drun::launcher
