// The agent's own getaddrinfo, linked into this test: it resolves numeric addresses only.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>

#include <string>

namespace {

// "ADDRESS port N", or "" if it is refused.
std::string resolved(const char* node, const char* service) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(node, service, &hints, &found) != 0) return "";
  EXPECT_EQ(found->ai_socktype, SOCK_STREAM);
  EXPECT_EQ(found->ai_family, found->ai_addr->sa_family);
  EXPECT_EQ(found->ai_next, nullptr);
  char text[NI_MAXHOST] = {};
  EXPECT_EQ(::getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST), 0);
  const bool is_v6 = found->ai_family == AF_INET6;
  EXPECT_EQ(found->ai_addrlen, is_v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
  const auto port = is_v6 ? reinterpret_cast<const sockaddr_in6*>(found->ai_addr)->sin6_port
                          : reinterpret_cast<const sockaddr_in*>(found->ai_addr)->sin_port;
  ::freeaddrinfo(found);
  return std::string(text) + " port " + std::to_string(ntohs(port));
}

TEST(AgentNames, AddressesInDigitsAreTaken) {
  EXPECT_EQ(resolved("10.0.0.2", "12345"), "10.0.0.2 port 12345");
  EXPECT_EQ(resolved("fd00::2", "1"), "fd00::2 port 1");
  EXPECT_EQ(resolved("127.0.0.1", nullptr), "127.0.0.1 port 0");
  EXPECT_EQ(resolved("fe80::1%1", "5"), "fe80::1%1 port 5");
  EXPECT_EQ(resolved("fe80::1%lo", "5"), "fe80::1%1 port 5");
}

TEST(AgentNames, NamesAreNot) {
  for (const char* node : {"localhost", "host1", "", "10.0.0", "10.0.0.2%lo", "fe80::1%", "fe80::1%no-such-nic"}) {
    EXPECT_EQ(resolved(node, "1"), "") << node;
  }
  EXPECT_EQ(resolved("10.0.0.2", "http"), "");
  EXPECT_EQ(resolved("10.0.0.2", "65536"), "");
  EXPECT_NE(::getaddrinfo(nullptr, "1", nullptr, nullptr), 0);
}

TEST(AgentNames, AddressesDoNotBecomeNames) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  char text[NI_MAXHOST];
  EXPECT_NE(
      ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), sizeof address, text, sizeof text, nullptr, 0, 0), 0);
  EXPECT_EQ(
      ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), sizeof address, text, 4, nullptr, 0, NI_NUMERICHOST),
      EAI_OVERFLOW);
}

}  // namespace
