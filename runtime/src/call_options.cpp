#include "runtime/src/call_options.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace drun::runtime {
namespace {

// As much of it as is kept, without half a character at the end and without what would break a line of an error.
std::string shown_name(const char* name) {
  std::string result(name, ::strnlen(name, CallOptions::kNameBytes + 1));
  if (result.size() > CallOptions::kNameBytes) {
    std::size_t end = CallOptions::kNameBytes;
    while (end > 0 && (static_cast<unsigned char>(result[end]) & 0xc0) == 0x80) --end;
    result.resize(end);
  }
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
  }
  return result;
}

}  // namespace

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
  if (options.name != nullptr && *options.name != '\0') result.name = shown_name(options.name);
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
