#include "runtime/src/gpu/nccl_conf.h"

#include <cstdlib>

#include "base/fd.h"

namespace drun::runtime::gpu {
namespace {

constexpr std::size_t kMaxFileBytes = 1u << 20;

std::string value_of(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string value_in(const std::string& path, const char* name) {
  const auto text = read_file(path, kMaxFileBytes);
  return text ? nccl_conf_value(*text, name) : "";
}

}  // namespace

std::string nccl_conf_value(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (line.size() > name.size() && line.substr(0, name.size()) == name && line[name.size()] == '=') {
      return std::string(line.substr(name.size() + 1));
    }
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return "";
}

std::string nccl_setting(const char* name) {
  std::string value = value_of(name);
  if (!value.empty()) return value;
  std::string own = value_of("NCCL_CONF_FILE");
  if (own.empty() && !value_of("HOME").empty()) own = value_of("HOME") + "/.nccl.conf";
  if (!own.empty()) value = value_in(own, name);
  return value.empty() ? value_in("/etc/nccl.conf", name) : value;
}

}  // namespace drun::runtime::gpu
