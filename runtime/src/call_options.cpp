#include "runtime/src/call_options.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "base/clean_text.h"
#include "base/wording.h"

namespace drun::runtime {

void CallOptions::give_name(std::string_view given) {
  const ScannedName scanned = scan_name(given);
  names = scanned.digest;
  name = cut_text(given, kNameBytes);
  if (!scanned.is_plain) name = clean_line(name);
}

Status read_call_options(const char* function, const drun_call_options* given, CallOptions& result) {
  if (given == nullptr) return {};
  const auto wrong = [&](const char* what) {
    return failure(DRUN_ERROR_ARGUMENT, std::string(function) + ": " + what);
  };
  if (given->struct_size < sizeof given->struct_size) return wrong("options.struct_size is not set");
  drun_call_options completed = DRUN_CALL_OPTIONS;
  const bool is_whole = given->struct_size >= sizeof completed;
  if (!is_whole) std::memcpy(&completed, given, given->struct_size);
  const drun_call_options& options = is_whole ? *given : completed;
  if (options.timeout_ms < 0) return wrong("options.timeout_ms is negative");
  if (!std::isfinite(options.prescale)) return wrong("options.prescale is not a finite number");
  if (!std::isfinite(options.postscale)) return wrong("options.postscale is not a finite number");
  if (options.name != nullptr && *options.name != '\0') result.give_name(options.name);
  result.timeout = std::chrono::milliseconds(std::min(options.timeout_ms, kLongestMs));
  result.prescale = options.prescale;
  result.postscale = options.postscale;
  result.request = options.request;
  if (options.memory < DRUN_MEMORY_AUTO || options.memory > DRUN_MEMORY_DEVICE)
    return wrong("options.memory is no kind of memory");
  result.memory = options.memory;
  result.stream = options.stream;
  return {};
}

}  // namespace drun::runtime
