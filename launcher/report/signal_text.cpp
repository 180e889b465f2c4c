#include "launcher/report/signal_text.h"

#include <sys/wait.h>

#include <array>
#include <cstring>

#include "base/text.h"

namespace drun::launcher {

namespace {

// Linux's numbers on x86-64 and ARM. glibc's sigabbrev_np() is newer than the oldest glibc that drun runs on.
const char* abbreviation(int number) {
  static constexpr std::array kNames{"HUP",  "INT",    "QUIT", "ILL",   "TRAP", "ABRT", "BUS",  "FPE",
                                     "KILL", "USR1",   "SEGV", "USR2",  "PIPE", "ALRM", "TERM", "STKFLT",
                                     "CHLD", "CONT",   "STOP", "TSTP",  "TTIN", "TTOU", "URG",  "XCPU",
                                     "XFSZ", "VTALRM", "PROF", "WINCH", "POLL", "PWR",  "SYS"};
  return number >= 1 && number <= static_cast<int>(kNames.size()) ? kNames[static_cast<std::size_t>(number - 1)]
                                                                  : nullptr;
}

}  // namespace

std::string end_text(int wait_status) {
  if (WIFEXITED(wait_status)) return std::string(kExitedWithStatus) + std::to_string(WEXITSTATUS(wait_status));
  return std::string(kKilledBy) + signal_text(WTERMSIG(wait_status)) + (WCOREDUMP(wait_status) ? ", core dumped" : "");
}

std::string signal_name(int number) {
  const char* name = abbreviation(number);
  return name != nullptr ? "SIG" + std::string(name) : "signal " + std::to_string(number);
}

std::string signal_text(int number) {
  const char* words = abbreviation(number) != nullptr ? ::strsignal(number) : nullptr;
  return signal_name(number) + (words != nullptr ? " (" + lower(words) + ")" : "");
}

}  // namespace drun::launcher
