#include "cli/command_run.h"

#include <libssh/libssh.h>
#include <sodium.h>
#include <boost/version.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/exit_status.h"
#include "base/fd.h"
#include "base/json_text.h"
#include "base/text.h"
#include "check/before_job.h"
#include "cli/explain_env.h"
#include "cli/subcommand.h"
#include "cli/whole_file.h"
#include "launcher/plan/placement.h"

namespace drun::cli {

namespace {

void print(const std::string& text) { write_all(STDOUT_FILENO, text); }

// The option's value.
std::string bind_to_word(control::BindTo to) {
  return to == control::BindTo::kCore ? "core" : to == control::BindTo::kNuma ? "numa" : "none";
}

// "" without --bind-to. Only the hosts know which CPUs these are.
std::string binding_text(control::BindTo to) {
  if (to == control::BindTo::kCore) return "  each worker is bound to its even share of its host's cores\n";
  if (to == control::BindTo::kNuma)
    return "  each worker is bound to one NUMA node of its host, that of its GPU if known\n";
  return "";
}

// Prints the plan: which rank would run where.
int dry_run(const Options& options, Printer& printer) {
  const launcher::JobOptions& job = options.job;
  const auto placed = launcher::place(job.hosts, job.np);
  if (!placed) {
    printer.error(placed.error());
    return exit_status(placed.error().code);
  }
  printer.flush();
  if (options.json) {
    nlohmann::ordered_json plan;
    plan["schema"] = 1;
    plan["command"] = job.command;
    plan["working_directory"] = job.working_directory;
    plan["size"] = placed->size;
    const std::string& allocation = job.hosts.front().job;
    plan["allocation"] = allocation.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(allocation);
    plan["config_files"] = options.config.files;
    plan["bind_to"] = bind_to_word(job.bind_to);
    plan["hosts"] = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < placed->host_indices.size(); ++i) {
      const auto& host = job.hosts[static_cast<std::size_t>(placed->host_indices[i])];
      nlohmann::ordered_json entry;
      entry["name"] = host.name;
      entry["user"] = host.user;
      entry["port"] = host.port;
      entry["slots"] = host.slots;
      entry["workers"] = placed->local_sizes[i];
      plan["hosts"].push_back(entry);
    }
    plan["ranks"] = nlohmann::ordered_json::array();
    for (const auto& r : placed->ranks) {
      nlohmann::ordered_json entry;
      entry["rank"] = r.rank;
      entry["host"] = job.hosts[static_cast<std::size_t>(placed->host_indices[static_cast<std::size_t>(r.host)])].name;
      entry["local_rank"] = r.local_rank;
      entry["local_size"] = r.local_size;
      entry["cross_rank"] = r.cross_rank;
      entry["cross_size"] = r.cross_size;
      plan["ranks"].push_back(entry);
    }
    print(json_text(plan, 2) + "\n");
    return 0;
  }
  std::string text = plural(static_cast<std::size_t>(placed->size), "worker") + " on " +
                     plural(placed->host_indices.size(), "host") + ":";
  for (const auto& word : job.command) text += " " + shell_quote(word);
  text += "\n";
  int first = 0;
  for (std::size_t i = 0; i < placed->host_indices.size(); ++i) {
    const auto& host = job.hosts[static_cast<std::size_t>(placed->host_indices[i])];
    const int last = first + placed->local_sizes[i] - 1;
    text += "  " + (host.user.empty() ? "" : host.user + "@") + host.name + ": rank" +
            (first == last ? " " + std::to_string(first) : "s " + std::to_string(first) + "-" + std::to_string(last)) +
            "\n";
    first = last + 1;
  }
  const std::string summary = options.config.summary();
  print(text + binding_text(job.bind_to) + (summary.empty() ? "" : "  " + summary + "\n"));
  return 0;
}

int explain_env(const Options& options, Printer& printer) {
  const auto explained = explain_rank(options);
  if (!explained) {
    printer.error(explained.error());
    return exit_status(explained.error().code);
  }
  printer.flush();
  print(options.json ? explained_json(*explained) : explained_text(*explained));
  return 0;
}

int check_build() {
  std::string text = "drun " DRUN_VERSION "\n";
  text += std::string("  libssh ") + ssh_version(0) + "\n";
  text += std::string("  libsodium ") + sodium_version_string() + "\n";
  text += "  Boost " + std::to_string(BOOST_VERSION / 100000) + "." + std::to_string(BOOST_VERSION / 100 % 1000) + "\n";
  text += "  transports: ssh (libssh), openssh (OpenSSH's client), local\n";
  text += "  collectives: shared memory and TCP on CPUs, NCCL on GPUs\n";
  print(text);
  return 0;
}

}  // namespace

int command_run(Options options, Printer& printer) {
  switch (options.action) {
    case Action::kHelp:
      print(options.help);
      return 0;
    case Action::kVersion:
      print("drun " DRUN_VERSION "\n");
      return 0;
    case Action::kCheckBuild:
      return check_build();
    case Action::kRun:
      break;
  }
  if (auto ok = printer.start_log(options.log_level, options.log_file); !ok) {
    printer.error(ok.error());
    return kExitUsage;
  }
  if (options.log_level != log::Level::kOff && options.log_file.empty()) printer.disable_status();
  say_sources(options.config, options.job.hosts, printer);
  if (options.explained_rank) return explain_env(options, printer);
  if (options.dry_run) return dry_run(options, printer);
  if (options.check) options.job.examine_hosts = check::examine_before(options.job, *options.check);
  if (!options.report_file.empty()) {
    if (const auto ok = check_writable("--report", options.report_file); !ok) {
      printer.error(ok.error());
      return kExitUsage;
    }
  }
  printer.set_report_file(options.report_file);
  return launcher::run_job(std::move(options.job), printer);
}

}  // namespace drun::cli
