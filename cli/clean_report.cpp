#include "cli/clean_report.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/clean_text.h"
#include "base/json_text.h"
#include "base/text.h"
#include "base/wording.h"

namespace drun::cli {

namespace {

using control::LeftProcess;
using control::LeftState;

constexpr std::size_t kMinCommand = 20;

const char* state_name(LeftState state) {
  switch (state) {
    case LeftState::kLeft:
      return "left";
    case LeftState::kRunning:
      return "running";
    case LeftState::kEnded:
      return "ended";
    case LeftState::kSurvived:
      return "survived";
  }
  return "unknown";
}

std::string headline(LeftState state, const std::string& job, std::size_t n) {
  const std::string processes = plural(n, "process");
  switch (state) {
    case LeftState::kLeft:
      return "job " + job + " left " + processes + ":";
    case LeftState::kRunning:
      return "job " + job + " is running, " + processes + ", not touched:";
    case LeftState::kEnded:
      return "ended " + processes + " of job " + job + ":";
    case LeftState::kSurvived:
      return processes + " of job " + job + " could not be ended:";
  }
  return job;
}

std::string left(const std::string& text, std::size_t width) {
  return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
}

std::string right(const std::string& text, std::size_t width) {
  return text + std::string(width > text.size() ? width - text.size() : 0, ' ');
}

std::string rows(const std::vector<const LeftProcess*>& processes, std::size_t width) {
  std::size_t user_width = 4;
  for (const auto* p : processes) user_width = std::max(user_width, p->user.size());
  const auto row = [&](const std::string& rank, const std::string& pid, const std::string& user, const std::string& age,
                       const std::string& command) {
    const std::string head =
        "  " + left(rank, 5) + " " + left(pid, 8) + "  " + right(user, user_width) + " " + left(age, 7) + "  ";
    const std::size_t room = width > head.size() + kMinCommand ? width - head.size() : kMinCommand;
    return head + (width == 0 ? command : std::string(cut_text(command, room))) + "\n";
  };
  std::string out = row("RANK", "PID", "USER", "AGE", "COMMAND");
  for (const auto* p : processes) {
    out += row(p->rank < 0 ? "-" : std::to_string(p->rank), std::to_string(p->pid), clean_line(p->user),
               age_text(p->age_s), clean_line(p->command));
  }
  return out;
}

// Directories of one job that are in the same state.
struct Directories {
  std::string job;
  LeftState state = LeftState::kLeft;
  std::vector<std::string> paths;
};

// A socket's directory has the first digits of the job's id in its name, a cgroup has all of them.
bool is_same_job(const std::string& a, const std::string& b) {
  return a == b || (!a.empty() && !b.empty() && (starts_with(a, b) || starts_with(b, a)));
}

std::vector<Directories> by_job(const control::Cleaned& found) {
  std::vector<Directories> out;
  for (const auto& d : found.directories) {
    const auto is_its = [&d](const Directories& known) {
      return known.state == d.state && is_same_job(known.job, d.job_id);
    };
    auto entry = std::find_if(out.begin(), out.end(), is_its);
    if (entry == out.end()) entry = out.insert(out.end(), Directories{d.job_id, d.state, {}});
    if (d.job_id.size() > entry->job.size()) entry->job = d.job_id;
    entry->paths.push_back(d.path);
  }
  return out;
}

// Their names are shown only if the user must remove them.
std::string directories_line(const Directories& d) {
  const std::string directories = d.paths.size() == 1 ? "a directory" : std::to_string(d.paths.size()) + " directories";
  switch (d.state) {
    case LeftState::kEnded:
      return "removed " + directories + " of job " + d.job;
    case LeftState::kSurvived:
      return "could not remove " + directories + " of job " + d.job + ": " + join(d.paths, ", ");
    default:
      return "job " + d.job + " left " + directories;
  }
}

}  // namespace

std::string age_text(std::uint64_t seconds) {
  char text[64];
  const auto n = static_cast<unsigned long long>(seconds);
  if (n < 60) {
    std::snprintf(text, sizeof text, "%llus", n);
  } else if (n < 3600) {
    std::snprintf(text, sizeof text, "%llum", n / 60);
  } else if (n < 86400) {
    std::snprintf(text, sizeof text, "%lluh%02llum", n / 3600, n / 60 % 60);
  } else {
    std::snprintf(text, sizeof text, "%llud%02lluh", n / 86400, n / 3600 % 24);
  }
  return text;
}

std::string clean_table(const launcher::CleanResult& result, std::size_t width) {
  std::string out;
  std::vector<std::string> empty;
  for (const auto& host : result.hosts) {
    const auto& found = host.found;
    if (found.processes.empty() && found.directories.empty()) empty.push_back(host.name);
    for (const auto state : {LeftState::kLeft, LeftState::kSurvived, LeftState::kEnded, LeftState::kRunning}) {
      for (auto first = found.processes.begin(); first != found.processes.end();) {
        const auto last =
            std::find_if(first, found.processes.end(), [&](const LeftProcess& p) { return p.job_id != first->job_id; });
        std::vector<const LeftProcess*> of_job;
        for (auto p = first; p != last; ++p) {
          if (p->state == state) of_job.push_back(&*p);
        }
        if (!of_job.empty()) {
          out +=
              host.name + ": " + clean_line(headline(state, first->job_id, of_job.size())) + "\n" + rows(of_job, width);
        }
        first = last;
      }
    }
    for (const auto& d : by_job(found)) out += host.name + ": " + clean_line(directories_line(d)) + "\n";
  }
  if (!empty.empty()) out += join(empty, ", ") + ": nothing left\n";
  return out;
}

std::string clean_json(const launcher::CleanResult& result) {
  nlohmann::ordered_json out;
  out["schema"] = 1;
  out["hosts"] = nlohmann::ordered_json::array();
  for (const auto& host : result.hosts) {
    nlohmann::ordered_json entry;
    entry["name"] = host.name;
    entry["processes"] = nlohmann::ordered_json::array();
    for (const auto& p : host.found.processes) {
      nlohmann::ordered_json process;
      process["state"] = state_name(p.state);
      process["job"] = p.job_id;
      process["rank"] = p.rank < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(p.rank);
      process["pid"] = p.pid;
      process["uid"] = p.uid;
      process["user"] = p.user;
      process["age_seconds"] = p.age_s;
      process["command"] = p.command;
      entry["processes"].push_back(process);
    }
    entry["directories"] = nlohmann::ordered_json::array();
    for (const auto& d : host.found.directories) {
      nlohmann::ordered_json directory;
      directory["state"] = state_name(d.state);
      directory["job"] = d.job_id;
      directory["path"] = d.path;
      entry["directories"].push_back(directory);
    }
    out["hosts"].push_back(entry);
  }
  out["errors"] = nlohmann::ordered_json::array();
  for (const auto& e : result.errors) {
    nlohmann::ordered_json error;
    error["host"] = e.subject;
    error["cause"] = e.cause;
    out["errors"].push_back(error);
  }
  return json_text(out, 2) + "\n";
}

bool anything_left(const launcher::CleanResult& result) {
  const auto is_left = [](const auto& item) {
    return item.state == LeftState::kLeft || item.state == LeftState::kSurvived;
  };
  return std::any_of(result.hosts.begin(), result.hosts.end(), [&](const launcher::CleanedHost& host) {
    return std::any_of(host.found.processes.begin(), host.found.processes.end(), is_left) ||
           std::any_of(host.found.directories.begin(), host.found.directories.end(), is_left);
  });
}

}  // namespace drun::cli
