#include "cli/json_report.h"

#include <sys/wait.h>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "cli/whole_file.h"
#include "launcher/report/events.h"

namespace drun::cli {

namespace {

using Json = nlohmann::ordered_json;

Json optional_text(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

void add_end(Json& out, int exit_code, int signal, bool core_dumped) {
  out["exit_code"] = exit_code >= 0 ? Json(exit_code) : Json(nullptr);
  out["signal"] = signal > 0 ? Json(signal) : Json(nullptr);
  out["core_dumped"] = core_dumped;
}

Json failure_json(const launcher::JobFailure& f) {
  Json out;
  out["rank"] = f.rank >= 0 ? Json(f.rank) : Json(nullptr);
  out["host"] = f.host;
  out["pid"] = f.pid > 0 ? Json(f.pid) : Json(nullptr);
  out["what"] = f.what;
  add_end(out, f.exit_code, f.signal, f.core_dumped);
  out["out_of_memory"] = optional_text(f.out_of_memory);
  out["error"] = optional_text(f.own_error);
  out["complaint"] = optional_text(f.complaint);
  out["last_call"] = nullptr;
  if (f.last_call) {
    Json call;
    call["operation"] = f.last_call->operation;
    call["seq"] = f.last_call->seq;
    call["name"] = optional_text(f.last_call->name);
    call["communicator"] = f.last_call->comm;
    call["state"] = !f.last_call->ended ? "open" : f.last_call->status == 0 ? "done" : "failed";
    call["seconds"] = f.last_call->seconds;
    out["last_call"] = call;
  }
  out["details"] = f.details;
  out["last_lines"] = f.last_lines;
  return out;
}

Json rank_json(const launcher::RankReport& r) {
  Json out;
  out["rank"] = r.rank;
  out["host"] = r.host;
  out["pid"] = r.pid > 0 ? Json(r.pid) : Json(nullptr);
  const int status = r.wait_status.value_or(0);
  const bool exited = r.wait_status && WIFEXITED(status);
  const bool signaled = r.wait_status && WIFSIGNALED(status);
  add_end(out, exited ? WEXITSTATUS(status) : -1, signaled ? WTERMSIG(status) : 0, signaled && WCOREDUMP(status));
  out["ended_by_drun"] = r.ended_by_drun;
  out["seconds"] = r.seconds ? Json(*r.seconds) : Json(nullptr);
  out["cpus"] = optional_text(r.cpus);
  return out;
}

}  // namespace

std::string to_json(const launcher::JobReport& report) {
  Json out;
  out["schema"] = 1;
  out["job"] = report.job_id;
  out["command"] = report.command;
  out["working_directory"] = report.working_directory;
  out["begin"] = launcher::rfc3339(report.begin);
  out["seconds"] = report.seconds;
  out["status"] = report.status;
  out["why"] = optional_text(report.why);
  out["hosts"] = report.hosts;
  out["allocation"] = optional_text(report.allocation);
  out["first_failure"] = nullptr;
  if (report.failure) {
    Json failure;
    failure["seconds"] = report.failed_after_s;
    failure["first"] = Json::array();
    for (const auto& f : report.failure->first) failure["first"].push_back(failure_json(f));
    failure["clock_uncertainty_s"] = report.failure->uncertainty_s;
    failure["consequences"] = Json::array();
    for (const auto& f : report.failure->consequences) failure["consequences"].push_back(failure_json(f));
    failure["waited"] = Json::array();
    for (const auto& w : report.failure->waited) {
      Json waited;
      waited["call"] = w.text;
      waited["ranks"] = w.ranks;
      failure["waited"].push_back(waited);
    }
    failure["ended_by_drun"] = report.n_ended_by_drun;
    out["first_failure"] = failure;
  }
  out["ranks"] = Json::array();
  for (const auto& r : report.ranks) out["ranks"].push_back(rank_json(r));
  // Names and output of a program may not be UTF-8.
  return json_text(out, 2) + "\n";
}

Result<void> write_report(const launcher::JobReport& report, const std::string& path) {
  auto written = write_whole(path, to_json(report));
  if (!written) return fail(std::move(written.error()).with_subject("--report"));
  return {};
}

}  // namespace drun::cli
