#include "launcher/report/signal_text.h"

#include <sys/wait.h>

#include <cstring>

#include "base/text.h"

namespace drun::launcher {

std::string end_text(int wait_status) {
  if (WIFEXITED(wait_status)) return std::string(kExitedWithStatus) + std::to_string(WEXITSTATUS(wait_status));
  return std::string(kKilledBy) + signal_text(WTERMSIG(wait_status)) + (WCOREDUMP(wait_status) ? ", core dumped" : "");
}

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name != nullptr ? "SIG" + std::string(name) : "signal " + std::to_string(number);
}

std::string signal_text(int number) {
  const char* words = ::sigdescr_np(number);
  return signal_name(number) + (words != nullptr ? " (" + lower(words) + ")" : "");
}

}  // namespace drun::launcher
