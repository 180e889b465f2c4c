// The agent is static and never resolves names: NSS would load shared libraries. Asio's compiled part refers to these;
// defined here, they keep libc's resolver out of the binary and make the rule one that the linker checks.
#include <netdb.h>

extern "C" {

int getaddrinfo(const char*, const char*, const addrinfo*, addrinfo**) { return EAI_FAIL; }

void freeaddrinfo(addrinfo*) {}

int getnameinfo(const sockaddr*, socklen_t, char*, socklen_t, char*, socklen_t, int) { return EAI_FAIL; }

}  // extern "C"
