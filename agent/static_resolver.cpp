// The agent is static and never resolves names: NSS would load shared libraries. Asio's compiled part and libdrun
// refer to these functions. These definitions keep libc's resolver out of the binary, so that the linker enforces the
// rule. libdrun uses only numeric addresses, which need no resolver.
#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

// The result of getaddrinfo, in one allocation.
struct Found {
  addrinfo info;
  union {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
  } address;
};

// Cuts the scope off `text`: "fe80::1%eth0", or "%2". False if it is invalid.
bool take_scope(std::string& text, std::uint32_t& scope) {
  const auto percent = text.find('%');
  if (percent == std::string::npos) return true;
  const std::string name = text.substr(percent + 1);
  text.resize(percent);
  scope = ::if_nametoindex(name.c_str());
  if (scope == 0) scope = static_cast<std::uint32_t>(std::strtoul(name.c_str(), nullptr, 10));
  return scope != 0;
}

}  // namespace

extern "C" {

int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** out) {
  if (node == nullptr) return EAI_NONAME;
  char* end = nullptr;
  const unsigned long port = service == nullptr ? 0 : std::strtoul(service, &end, 10);
  if ((end != nullptr && *end != '\0') || port > 65535) return EAI_SERVICE;
  auto* found = static_cast<Found*>(std::calloc(1, sizeof(Found)));
  if (found == nullptr) return EAI_MEMORY;
  std::string text = node;
  if (::inet_pton(AF_INET, node, &found->address.v4.sin_addr) == 1) {
    found->address.v4.sin_family = AF_INET;
    found->address.v4.sin_port = htons(static_cast<std::uint16_t>(port));
    found->info.ai_addrlen = sizeof(sockaddr_in);
  } else if (take_scope(text, found->address.v6.sin6_scope_id) &&
             ::inet_pton(AF_INET6, text.c_str(), &found->address.v6.sin6_addr) == 1) {
    found->address.v6.sin6_family = AF_INET6;
    found->address.v6.sin6_port = htons(static_cast<std::uint16_t>(port));
    found->info.ai_addrlen = sizeof(sockaddr_in6);
  } else {
    std::free(found);
    return EAI_NONAME;
  }
  found->info.ai_family = found->address.any.sa_family;
  if (hints != nullptr) {
    found->info.ai_socktype = hints->ai_socktype;
    found->info.ai_protocol = hints->ai_protocol;
  }
  found->info.ai_addr = &found->address.any;
  *out = &found->info;
  return 0;
}

void freeaddrinfo(addrinfo* found) { std::free(found); }  // `info` comes first

int getnameinfo(const sockaddr* address, socklen_t, char* host, socklen_t host_size, char*, socklen_t, int flags) {
  if (host == nullptr || (flags & NI_NUMERICHOST) == 0) return EAI_FAIL;
  const void* bytes = &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  if (address->sa_family == AF_INET6) bytes = &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  if (::inet_ntop(address->sa_family, bytes, host, host_size) == nullptr) return EAI_OVERFLOW;
  const std::uint32_t scope =
      address->sa_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(address)->sin6_scope_id : 0;
  const std::string suffix = scope == 0 ? "" : "%" + std::to_string(scope);
  if (std::strlen(host) + suffix.size() >= host_size) return EAI_OVERFLOW;
  std::strcat(host, suffix.c_str());
  return 0;
}

}  // extern "C"
