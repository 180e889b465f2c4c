// What `drun check` found out, as data: filled by check.cpp, shown by cli/check_*.cpp. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "check/cost_model.h"
#include "check/finding.h"
#include "control/host_facts.h"
#include "netdetect/choose.h"
#include "netdetect/interface.h"
#include "netdetect/link.h"

namespace drun::check {

enum class CheckDepth : std::uint8_t { kQuick, kDefault, kFull };

// One host of the list. Those that could not be reached have an error and nothing else.
struct CheckedHost {
  std::string name;       // as the user wrote it
  std::string host_name;  // uname -n
  int slots = 1;
  std::optional<Error> error;  // it can't be reached, logged in to, or was lost in mid-check
  Verdict verdict = Verdict::kReady;
  std::vector<netdetect::Interface> interfaces;
  std::vector<netdetect::Rejection> rejected;  // of its interfaces, with the reason each
  std::optional<netdetect::HostChoice> choice;
  std::optional<control::HostFacts> facts;
  double connect_seconds = 0;  // from the first packet to the agent's hello
};

struct CheckResult {
  std::string version;  // drun's
  std::chrono::system_clock::time_point begin;
  double seconds = 0;
  CheckDepth depth = CheckDepth::kDefault;
  std::vector<CheckedHost> hosts;
  // reach[i][j], by index into `hosts`: as netdetect::Choice has it; empty: not known.
  std::vector<std::vector<int>> reach;
  netdetect::LinkReport links;          // indices into `hosts`
  std::vector<Finding> findings;        // worst first; indices into `hosts`
  std::optional<Prediction> predicted;  // nothing: too little was measured
  Verdict verdict = Verdict::kReady;
  std::vector<std::string> notes;  // what was left out for want of time, and the like
  // Why not all hosts got an interface, as `drun run` would say it; nothing: they did. kUsage: the options are at
  // fault, and the rest of the result means nothing.
  std::optional<Error> network_error;
  std::optional<Error> not_saved;  // why --save-baseline could not write its file
};

}  // namespace drun::check
