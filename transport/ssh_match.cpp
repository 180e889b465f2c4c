#include "transport/ssh_match.h"

#include <optional>

#include "base/text.h"

namespace drun::transport {
namespace {

std::optional<std::string> subject_of(const std::string& criterion, const MatchSubject& subject) {
  if (criterion == "host") return lower(subject.host);
  if (criterion == "originalhost") return lower(subject.original_host);
  if (criterion == "user") return subject.user;
  if (criterion == "localuser") return subject.local_user;
  return std::nullopt;
}

bool is_about_pass(const std::string& criterion) { return criterion == "canonical" || criterion == "final"; }

bool known_to_openssh(const std::string& criterion) {
  for (const char* name : {"exec", "localnetwork", "tagged", "version", "sessiontype", "command"}) {
    if (criterion == name) return true;
  }
  return is_about_pass(criterion);
}

}  // namespace

bool host_patterns_match(const std::vector<std::string>& patterns, const std::string& host) {
  bool found = false;
  for (const auto& pattern : patterns) {
    const bool negated = starts_with(pattern, "!");
    if (!glob_match(negated ? pattern.substr(1) : pattern, host)) continue;
    if (negated) return false;
    found = true;
  }
  return found;
}

bool pattern_list_match(std::string_view patterns, const std::string& word) {
  std::vector<std::string> list;
  for (const auto pattern : split(patterns, ',')) list.emplace_back(trim(pattern));
  return host_patterns_match(list, word);
}

Result<MatchVerdict> evaluate_match(const std::vector<std::string>& words, const MatchSubject& subject) {
  MatchVerdict verdict;
  verdict.matches = true;
  std::size_t n_criteria = 0;
  for (std::size_t i = 0; i < words.size(); ++i, ++n_criteria) {
    std::string criterion = words[i];
    std::optional<std::string> argument;
    if (const auto equals = criterion.find('='); equals != std::string::npos) {
      argument = criterion.substr(equals + 1);
      criterion.resize(equals);
    }
    const bool negated = starts_with(criterion, "!");
    criterion = lower(negated ? criterion.substr(1) : criterion);
    if (criterion == "all") {
      if (n_criteria > 1 || i + 1 < words.size()) {
        return fail(Errc::kUsage, "Match all can't be combined with other criteria");
      }
      if (negated) verdict.matches = false;
      continue;
    }
    if (is_about_pass(criterion)) {  // in OpenSSH from 10.1 on "!final" asks for no second pass
      if (subject.is_final_pass == negated) verdict.matches = false;
      if (criterion == "final") verdict.wants_final_pass = true;
      continue;
    }
    const auto word = subject_of(criterion, subject);
    if (!word && !known_to_openssh(criterion))
      return fail(Errc::kUsage, "unsupported Match criterion '" + criterion + "'");
    if (!argument) {
      if (++i == words.size()) return fail(Errc::kUsage, "Match " + criterion + ": missing argument");
      argument = words[i];
    }
    if (word) {
      const bool lowers = criterion == "host" || criterion == "originalhost";
      if (pattern_list_match(lowers ? lower(*argument) : *argument, *word) == negated) verdict.matches = false;
    } else if (verdict.needs_openssh.empty()) {
      verdict.needs_openssh = criterion;
    }
  }
  // The other criteria already exclude the host, so OpenSSH need not decide.
  if (!verdict.matches) verdict.needs_openssh.clear();
  if (!verdict.needs_openssh.empty()) verdict.matches = false;
  return verdict;
}

}  // namespace drun::transport
