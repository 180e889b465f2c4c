// The result of `drun check`, as data: filled by check.cpp, shown by cli/check_report. Pure.
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

// One host of the list. A host that could not be reached has an error, but no facts or measurements.
struct CheckedHost {
  std::string name;       // as the user wrote it
  std::string host_name;  // uname -n
  std::string login;      // TypedLogin::words
  int slots = 1;
  std::optional<Error> error;  // can't be reached, can't be logged in to, or was lost during the check
  Verdict verdict = Verdict::kReady;
  std::vector<netdetect::Interface> interfaces;
  std::vector<netdetect::Rejection> rejected;  // rejected interfaces and addresses, each with its reason
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
  // reach[i][j], by index into `hosts`: as in netdetect::Choice; empty: unknown.
  std::vector<std::vector<int>> reach;
  netdetect::LinkReport links;          // indices into `hosts`
  std::vector<Finding> findings;        // worst first; indices into `hosts`
  std::optional<Prediction> predicted;  // nullopt: too little was measured
  Verdict verdict = Verdict::kReady;
  std::vector<std::string> notes;  // measurements skipped for lack of time, and the like
  // The reason why some hosts got no interface, as in the error of `drun run`; nullopt: all got one. kUsage: the
  // options or the ssh config are wrong, and the rest of the result is undefined.
  std::optional<Error> network_error;
  std::optional<Error> not_saved;  // why --save-baseline could not write its file
};

}  // namespace drun::check
