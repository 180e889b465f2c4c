#include "base/process_stat.h"

#include <cstddef>

#include "base/fd.h"
#include "base/text.h"

namespace drun {
namespace {

constexpr std::size_t kMaxBytes = 4096;

std::optional<ProcessStat> read_stat(const std::string& process) {
  const auto stat = read_file("/proc/" + process + "/stat", kMaxBytes);
  return stat ? parse_stat(*stat) : std::nullopt;
}

}  // namespace

std::optional<ProcessStat> parse_stat(std::string_view stat) {
  // "PID (comm) S PPID ...": comm may contain any character, so fields are counted from the last parenthesis.
  const auto open = stat.find('(');
  const auto close = stat.rfind(") ");
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  const auto fields = split(stat.substr(close + 2), ' ');
  if (fields.size() < 20 || fields[0].size() != 1) return std::nullopt;
  const auto pid = parse_number(trim(stat.substr(0, open)));
  const auto parent = parse_number(fields[1]);
  const auto user_ticks = parse_number(fields[11]);
  const auto system_ticks = parse_number(fields[12]);
  const auto threads = parse_number(fields[17]);
  const auto start = parse_number(fields[19]);
  if (!pid || !parent || !start) return std::nullopt;
  ProcessStat out;
  out.pid = static_cast<pid_t>(*pid);
  out.parent = static_cast<pid_t>(*parent);
  out.start = *start;
  out.name = std::string(stat.substr(open + 1, close - open - 1));
  out.cpu = user_ticks.value_or(0) + system_ticks.value_or(0);
  out.state = fields[0][0];
  out.over = out.state == 'X' || (out.state == 'Z' && threads.value_or(1) <= 1);
  return out;
}

std::optional<ProcessStat> stat_of(pid_t pid) { return read_stat(std::to_string(pid)); }

std::optional<ProcessStat> own_stat() { return read_stat("self"); }

}  // namespace drun
