#include "launcher/report/same_failure.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "base/text.h"

namespace drun::launcher {

namespace {

constexpr std::string_view kTraceback = "Traceback (most recent call last)";
constexpr std::size_t kAddressDigits = 6;  // "0x" with fewer digits is a number

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_hex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }

std::string_view leading(std::string_view text, bool (*belongs)(char)) {
  return text.substr(0, static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), belongs) - text.begin()));
}

bool is_own(std::string_view number, int own) { return own >= 0 && number == std::to_string(own); }

bool same_numbers(std::string_view a, const JobFailure& of_a, std::string_view b, const JobFailure& of_b) {
  return a == b || (is_own(a, of_a.rank) && is_own(b, of_b.rank)) ||
         (is_own(a, of_a.local_rank) && is_own(b, of_b.local_rank)) || (is_own(a, of_a.pid) && is_own(b, of_b.pid));
}

bool same_text(std::string_view a, const JobFailure& of_a, std::string_view b, const JobFailure& of_b) {
  while (!a.empty() && !b.empty()) {
    std::size_t n_a = 1, n_b = 1;
    if (starts_with(a, "0x") && starts_with(b, "0x")) {
      n_a = 2 + leading(a.substr(2), is_hex).size();
      n_b = 2 + leading(b.substr(2), is_hex).size();
      const bool are_addresses = std::min(n_a, n_b) >= 2 + kAddressDigits;
      if (!are_addresses && a.substr(0, n_a) != b.substr(0, n_b)) return false;
    } else if (is_digit(a[0]) && is_digit(b[0])) {
      const auto number_a = leading(a, is_digit), number_b = leading(b, is_digit);
      if (!same_numbers(number_a, of_a, number_b, of_b)) return false;
      n_a = number_a.size();
      n_b = number_b.size();
    } else if (of_a.host != of_b.host && starts_with(a, of_a.host) && starts_with(b, of_b.host)) {
      n_a = of_a.host.size();
      n_b = of_b.host.size();
    } else if (a[0] != b[0]) {
      return false;
    }
    a.remove_prefix(n_a);
    b.remove_prefix(n_b);
  }
  return a.empty() && b.empty();
}

bool same_lines(const std::vector<std::string>& a, const JobFailure& of_a, const std::vector<std::string>& b,
                const JobFailure& of_b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const std::string& line_a, const std::string& line_b) {
    return same_text(line_a, of_a, line_b, of_b);
  });
}

}  // namespace

std::vector<std::string> telling_lines(const JobFailure& failure) {
  const auto& lines = failure.last_lines;
  const auto first = std::find_if(lines.begin(), lines.end(),
                                  [](const std::string& line) { return line.find(kTraceback) != std::string::npos; });
  return first == lines.end() ? lines : std::vector<std::string>(first, lines.end());
}

bool has_same_lines(const JobFailure& a, const JobFailure& b) { return same_lines(a.last_lines, a, b.last_lines, b); }

bool wrote_same_traceback(const JobFailure& a, const JobFailure& b) {
  const auto of_a = telling_lines(a);
  return !of_a.empty() && of_a.front().find(kTraceback) != std::string::npos &&
         same_lines(of_a, a, telling_lines(b), b);
}

bool is_same_failure(const JobFailure& a, const JobFailure& b) {
  if (a.rank < 0 || b.rank < 0) return false;  // lost hosts are reported one by one
  if (a.last_lines.empty() && a.own_error.empty()) return false;
  return a.status == b.status && a.exit_code == b.exit_code && a.signal == b.signal && a.core_dumped == b.core_dumped &&
         same_text(a.what, a, b.what, b) && same_text(a.out_of_memory, a, b.out_of_memory, b) &&
         same_text(a.own_error, a, b.own_error, b) && same_text(a.complaint, a, b.complaint, b) &&
         same_lines(a.details, a, b.details, b) && same_lines(telling_lines(a), a, telling_lines(b), b);
}

std::vector<std::vector<std::size_t>> same_failures(const std::vector<JobFailure>& failures) {
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < failures.size(); ++i) {
    const auto known = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return is_same_failure(failures[group.front()], failures[i]);
    });
    if (known == groups.end()) {
      groups.push_back({i});
    } else {
      known->push_back(i);
    }
  }
  return groups;
}

}  // namespace drun::launcher
