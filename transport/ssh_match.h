// The conditions of ssh config: Host patterns and Match criteria. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace drun::transport {

// `Host a *.b !c`: at least one match, and none of the negated ones.
bool host_patterns_match(const std::vector<std::string>& patterns, const std::string& host);
// `a,*.b,!c` as Match criteria and known_hosts have it.
bool pattern_list_match(std::string_view patterns, const std::string& word);

struct MatchSubject {
  std::string host;  // what HostName says so far
  std::string original_host;
  std::string user;
  std::string local_user;
};

struct MatchVerdict {
  bool matches = false;
  std::string needs_openssh;  // the criterion that decides and that only OpenSSH knows: "exec", "final", ...
};

// Errors: kUsage, without subject.
Result<MatchVerdict> evaluate_match(const std::vector<std::string>& words, const MatchSubject& subject);

}  // namespace drun::transport
