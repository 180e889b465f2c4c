#include "netdetect/proof.h"

#include <gtest/gtest.h>

#include "netdetect/mtu_datagram.h"

namespace drun::netdetect {
namespace {

constexpr std::string_view kToken = "sixteen bytes ok";
constexpr std::string_view kSession = "session of 16 by";

std::string hello(std::string_view token, int port) {
  const std::string nonce = make_nonce();
  return nonce + make_proof(token, Side::kClient, nonce, port);
}

TEST(Proof, AHelloThatProvesTheTokenIsAnsweredWithTheListenersProof) {
  const std::string client = hello(kToken, 4711);
  EXPECT_EQ(answer_hello(client, kToken, 4711),
            make_proof(kToken, Side::kServer, std::string_view(client).substr(0, kNonceBytes), 4711));
}

TEST(Proof, AHelloOfAnotherTokenPortOrSizeIsNotAnswered) {
  EXPECT_FALSE(answer_hello(hello("another 16 bytes", 4711), kToken, 4711));
  EXPECT_FALSE(answer_hello(hello(kToken, 4712), kToken, 4711));
  EXPECT_FALSE(answer_hello(hello(kToken, 4711) + "x", kToken, 4711));
  EXPECT_FALSE(answer_hello("", kToken, 4711));
}

TEST(Proof, NoChangedByteOfAHelloIsAnswered) {
  const std::string client = hello(kToken, 4711);
  for (std::size_t i = 0; i < client.size(); ++i) {
    std::string changed = client;
    changed[i] ^= 1;
    EXPECT_FALSE(answer_hello(changed, kToken, 4711)) << i;
  }
}

TEST(MtuDatagram, HasTheSizeThatWasAskedFor) {
  EXPECT_EQ(mtu_datagram(kToken, kSession, 4711, 1000).size(), 1000u);
  EXPECT_EQ(mtu_datagram(kToken, kSession, 4711, 0).size(), kNonceBytes + kProofBytes);
}

TEST(MtuDatagram, CountsOnlyAtItsPortAndInItsSession) {
  const std::string datagram = mtu_datagram(kToken, kSession, 4711, 100);
  EXPECT_TRUE(is_mtu_datagram(datagram, kToken, kSession, 4711));
  EXPECT_TRUE(is_mtu_datagram(std::string_view(datagram).substr(0, 40), kToken, kSession, 4711));
  EXPECT_FALSE(is_mtu_datagram(datagram, kToken, kSession, 4712));
  EXPECT_FALSE(is_mtu_datagram(datagram, kToken, "another session ", 4711));
  EXPECT_FALSE(is_mtu_datagram(datagram, "another 16 bytes", kSession, 4711));
  EXPECT_FALSE(is_mtu_datagram(std::string_view(datagram).substr(0, 31), kToken, kSession, 4711));
  EXPECT_FALSE(is_mtu_datagram("", kToken, kSession, 4711));
}

TEST(MtuDatagram, IsNoHelloOfATcpListenerOnTheSamePort) {
  const std::string datagram = mtu_datagram(kToken, kSession, 4711, kHelloBytes);
  EXPECT_FALSE(answer_hello(datagram, kToken, 4711));
}

}  // namespace
}  // namespace drun::netdetect
