// The conditions of ssh config: Host patterns and Match criteria. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace drun::transport {

// `Host a *.b !c`: true if at least one pattern and no negated one matches.
bool host_patterns_match(const std::vector<std::string>& patterns, const std::string& host);
// `a,*.b,!c`, the syntax of Match criteria and known_hosts.
bool pattern_list_match(std::string_view patterns, const std::string& word);

struct MatchSubject {
  std::string host;  // HostName as set so far
  std::string original_host;
  std::string user;
  std::string local_user;
  bool is_final_pass = false;
};

struct MatchVerdict {
  bool matches = false;
  bool wants_final_pass = false;  // "final" is among the criteria, whatever they say
  std::string needs_openssh;      // the deciding criterion that only OpenSSH can evaluate: "exec", "tagged", ...
};

// Errors: kUsage, without subject.
Result<MatchVerdict> evaluate_match(const std::vector<std::string>& words, const MatchSubject& subject);

}  // namespace drun::transport
