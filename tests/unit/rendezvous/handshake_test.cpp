#include "rendezvous/handshake.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace drun::rendezvous {
namespace {

struct Ends {
  SecureStreams client, server;
};

// The complete handshake; any step that fails fails the test.
Ends connect(const JobKey& key) {
  ClientHandshake client(key, Purpose::kRendezvous);
  ServerHandshake server(key, Purpose::kRendezvous);
  const auto answer = server.answer(client.hello());
  EXPECT_TRUE(answer);
  const auto proof = client.finish(answer.value_or(""));
  EXPECT_TRUE(proof);
  EXPECT_TRUE(server.verify(proof.value_or("")));
  return {client.streams(), server.streams()};
}

Result<std::string> open_frame(FrameCipher& cipher, std::string_view frame) {
  const auto n = FrameCipher::body_size(frame.substr(0, 4));
  if (!n) return fail(n.error());
  EXPECT_EQ(frame.size(), 4 + *n);
  return cipher.open(frame.substr(4));
}

TEST(Handshake, HasTheDocumentedSizesAndBytes) {
  const JobKey key = make_job_key();
  ClientHandshake client(key, Purpose::kPeer);
  const std::string hello = client.hello();
  ASSERT_EQ(hello.size(), kClientHelloBytes);
  EXPECT_EQ(hello.substr(0, 8), std::string("DRUN\0\3\2\0", 8));
  ServerHandshake server(key, Purpose::kPeer);
  const auto answer = server.answer(hello);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->size(), kServerHelloBytes);
  const auto proof = client.finish(*answer);
  ASSERT_TRUE(proof);
  EXPECT_EQ(proof->size(), kClientProofBytes);
  EXPECT_TRUE(server.verify(*proof));
}

TEST(Handshake, BothSidesCanTalkAfterIt) {
  Ends ends = connect(make_job_key());
  for (int i = 0; i < 100; ++i) {
    const std::string text = "message " + std::to_string(i);
    EXPECT_EQ(open_frame(ends.server.receive, ends.client.send.seal(text)).value_or(""), text);
    EXPECT_EQ(open_frame(ends.client.receive, ends.server.send.seal(text)).value_or(""), text);
  }
}

TEST(Handshake, ServerWithAnotherKeyIsNoticedByTheClient) {
  ClientHandshake client(make_job_key(), Purpose::kRendezvous);
  ServerHandshake server(make_job_key(), Purpose::kRendezvous);
  const auto answer = server.answer(client.hello());
  ASSERT_TRUE(answer);
  EXPECT_EQ(client.finish(*answer).error().code, Errc::kAuth);
}

TEST(Handshake, ClientWithAnotherKeyIsNoticedByTheServer) {
  const JobKey key = make_job_key();
  ServerHandshake server(key, Purpose::kRendezvous);
  ClientHandshake honest(key, Purpose::kRendezvous);
  ASSERT_TRUE(server.answer(honest.hello()));
  // The stranger answers with the best it can make: a proof under its own key.
  const JobKey other = make_job_key();
  ClientHandshake stranger(other, Purpose::kRendezvous);
  ServerHandshake its_own(other, Purpose::kRendezvous);
  const auto proof = stranger.finish(*its_own.answer(stranger.hello()));
  ASSERT_TRUE(proof);
  EXPECT_EQ(server.verify(*proof).error().code, Errc::kAuth);
  EXPECT_EQ(server.verify("").error().code, Errc::kAuth);
}

TEST(Handshake, OtherVersionGetsBothNumbersOnBothSides) {
  const JobKey key = make_job_key();
  ClientHandshake client(key, Purpose::kRendezvous);
  ServerHandshake server(key, Purpose::kRendezvous);
  std::string hello = client.hello();
  hello[5] = 9;
  const auto answer = server.answer(hello);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::kProtocol);
  EXPECT_EQ(answer.error().cause,
            "the client speaks protocol version 9, this side speaks 3; drun and libdrun must be of one release");
  std::string refusal = version_refusal(hello);
  ASSERT_EQ(refusal.size(), kServerHelloBytes);
  refusal[5] = 9;  // as a newer server sends it
  EXPECT_EQ(client.finish(refusal).error().cause,
            "the server speaks protocol version 9, this side speaks 3; drun and libdrun must be of one release");
}

TEST(Handshake, RefusalGoesOnlyToADrunOfAnotherVersion) {
  ClientHandshake client(make_job_key(), Purpose::kRendezvous);
  EXPECT_EQ(version_refusal(client.hello()), "");
  EXPECT_EQ(version_refusal(std::string(kClientHelloBytes, 'G')), "");
  EXPECT_EQ(version_refusal("DRUN"), "");
}

TEST(Handshake, PurposesDoNotMix) {
  const JobKey key = make_job_key();
  ClientHandshake client(key, Purpose::kPeer);
  ServerHandshake server(key, Purpose::kRendezvous);
  EXPECT_EQ(server.answer(client.hello()).error().code, Errc::kProtocol);
  // Fails even if the purpose byte is changed on the way.
  std::string hello = client.hello();
  hello[6] = static_cast<char>(Purpose::kRendezvous);
  const auto answer = server.answer(hello);
  ASSERT_TRUE(answer);
  EXPECT_EQ(client.finish(*answer).error().code, Errc::kAuth);
}

TEST(Handshake, EveryFlippedBitOfTheClientHelloFails) {
  const JobKey key = make_job_key();
  for (std::size_t bit = 0; bit < 8 * kClientHelloBytes; ++bit) {
    ClientHandshake client(key, Purpose::kRendezvous);
    ServerHandshake server(key, Purpose::kRendezvous);
    std::string hello = client.hello();
    hello[bit / 8] = static_cast<char>(hello[bit / 8] ^ (1 << (bit % 8)));
    const auto answer = server.answer(hello);
    if (answer) {
      EXPECT_EQ(client.finish(*answer).error().code, Errc::kAuth) << "bit " << bit;
    }
  }
}

TEST(Handshake, EveryFlippedBitOfTheServerHelloFails) {
  const JobKey key = make_job_key();
  for (std::size_t bit = 0; bit < 8 * kServerHelloBytes; ++bit) {
    ClientHandshake client(key, Purpose::kRendezvous);
    ServerHandshake server(key, Purpose::kRendezvous);
    std::string answer = server.answer(client.hello()).value_or("");
    answer[bit / 8] = static_cast<char>(answer[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_EQ(client.finish(answer).error().code, Errc::kAuth) << "bit " << bit;
  }
}

TEST(Handshake, EveryFlippedBitOfTheClientProofFails) {
  const JobKey key = make_job_key();
  for (std::size_t bit = 0; bit < 8 * kClientProofBytes; ++bit) {
    ClientHandshake client(key, Purpose::kRendezvous);
    ServerHandshake server(key, Purpose::kRendezvous);
    std::string proof = client.finish(server.answer(client.hello()).value_or("")).value_or("");
    ASSERT_EQ(proof.size(), kClientProofBytes);
    proof[bit / 8] = static_cast<char>(proof[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_EQ(server.verify(proof).error().code, Errc::kAuth) << "bit " << bit;
  }
}

TEST(Handshake, EveryTruncationFails) {
  const JobKey key = make_job_key();
  ClientHandshake client(key, Purpose::kRendezvous);
  ServerHandshake server(key, Purpose::kRendezvous);
  const std::string hello = client.hello();
  for (std::size_t n = 0; n < hello.size(); ++n) EXPECT_FALSE(server.answer(hello.substr(0, n)));
  const std::string answer = *server.answer(hello);
  for (std::size_t n = 0; n < answer.size(); ++n) EXPECT_FALSE(client.finish(answer.substr(0, n)));
  const std::string proof = *client.finish(answer);
  for (std::size_t n = 0; n < proof.size(); ++n) EXPECT_FALSE(server.verify(proof.substr(0, n)));
  EXPECT_FALSE(server.answer(hello + "x"));
  EXPECT_FALSE(client.finish(answer + "x"));
  EXPECT_FALSE(server.verify(proof + "x"));
}

TEST(Handshake, ReplayedMessagesAreWorthNothing) {
  const JobKey key = make_job_key();
  ClientHandshake client(key, Purpose::kRendezvous);
  ServerHandshake server(key, Purpose::kRendezvous);
  const std::string hello = client.hello();
  const std::string answer = *server.answer(hello);
  const std::string proof = *client.finish(answer);
  ServerHandshake next_server(key, Purpose::kRendezvous);
  ASSERT_TRUE(next_server.answer(hello));
  EXPECT_EQ(next_server.verify(proof).error().code, Errc::kAuth);
  ClientHandshake next_client(key, Purpose::kRendezvous);
  EXPECT_EQ(next_client.finish(answer).error().code, Errc::kAuth);
}

TEST(Handshake, ReflectionIsWorthNothing) {
  // A man in the middle reflects each side's bytes: the server's proof as the client's proof, and the client's nonce as
  // the server's.
  const JobKey key = make_job_key();
  ClientHandshake client(key, Purpose::kRendezvous);
  ServerHandshake server(key, Purpose::kRendezvous);
  const std::string answer = *server.answer(client.hello());
  EXPECT_EQ(server.verify(answer.substr(32)).error().code, Errc::kAuth);
  const std::string hello = client.hello();
  EXPECT_EQ(client.finish(hello.substr(8) + std::string(32, '\0')).error().code, Errc::kAuth);
}

TEST(Handshake, EachConnectionAndDirectionHasItsOwnKey) {
  const JobKey key = make_job_key();
  std::set<std::string> sealed;
  for (int i = 0; i < 4; ++i) {
    Ends ends = connect(key);
    sealed.insert(ends.client.send.seal("same"));
    sealed.insert(ends.client.send.seal("same"));
    sealed.insert(ends.server.send.seal("same"));
  }
  EXPECT_EQ(sealed.size(), 12u);
}

TEST(JobKeys, GoThroughHex) {
  const JobKey key = make_job_key();
  const std::string text = job_key_to_hex(key);
  EXPECT_EQ(text.size(), 64u);
  EXPECT_EQ(job_key_from_hex(text).value_or(JobKey{}), key);
  EXPECT_NE(make_job_key(), key);
}

TEST(JobKeys, RejectWhatIsNotSixtyFourHexDigits) {
  const std::string good(64, 'a');
  EXPECT_TRUE(job_key_from_hex(good));
  for (const std::string& bad : {std::string(), good.substr(1), good + "a", good.substr(1) + "g", good.substr(1) + " ",
                                 good.substr(2) + "0x", std::string(64, '\0')}) {
    EXPECT_FALSE(job_key_from_hex(bad)) << bad;
  }
}

TEST(Frames, LengthsOutOfBoundsAreRefused) {
  const auto prefix = [](std::uint32_t n) {
    ByteWriter out;
    out.u32(n);
    return out.take();
  };
  for (const std::uint32_t n : {0u, 1u, 15u, static_cast<std::uint32_t>(kMaxFrame) + 17u, 0x7fffffffu, 0xffffffffu}) {
    EXPECT_EQ(FrameCipher::body_size(prefix(n)).error().code, Errc::kProtocol) << n;
  }
  EXPECT_EQ(FrameCipher::body_size(prefix(16)).value_or(0), 16u);
  EXPECT_EQ(FrameCipher::body_size(prefix(kMaxFrame + 16)).value_or(0), kMaxFrame + 16);
  EXPECT_FALSE(FrameCipher::body_size("abc"));
  EXPECT_FALSE(FrameCipher::body_size("abcde"));
}

TEST(Frames, EmptyAndLargestGoThrough) {
  Ends ends = connect(make_job_key());
  EXPECT_EQ(open_frame(ends.server.receive, ends.client.send.seal("")).value_or("x"), "");
  const std::string big(kMaxFrame, 'b');
  EXPECT_TRUE(open_frame(ends.server.receive, ends.client.send.seal(big)).value_or("") == big);
}

TEST(Frames, EveryFlippedBitFails) {
  Ends ends = connect(make_job_key());
  const std::string frame = ends.client.send.seal("pay 3 to rank 2");
  for (std::size_t bit = 32; bit < 8 * frame.size(); ++bit) {
    std::string changed = frame;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_EQ(ends.server.receive.open(std::string_view(changed).substr(4)).error().code, Errc::kAuth) << bit;
  }
  EXPECT_TRUE(open_frame(ends.server.receive, frame));
}

TEST(Frames, TheLengthIsSealedToo) {
  Ends ends = connect(make_job_key());
  const std::string frame = ends.client.send.seal("text");
  EXPECT_FALSE(ends.server.receive.open(frame.substr(4, frame.size() - 5)));
  EXPECT_FALSE(ends.server.receive.open(frame.substr(4) + "x"));
  EXPECT_FALSE(ends.server.receive.open(""));
}

TEST(Frames, ReorderedRepeatedAndReflectedFramesFail) {
  Ends ends = connect(make_job_key());
  const std::string first = ends.client.send.seal("first");
  const std::string second = ends.client.send.seal("second");
  EXPECT_EQ(open_frame(ends.server.receive, second).error().code, Errc::kAuth);
  EXPECT_TRUE(open_frame(ends.server.receive, first));
  EXPECT_EQ(open_frame(ends.server.receive, first).error().code, Errc::kAuth);
  EXPECT_TRUE(open_frame(ends.server.receive, second));
  EXPECT_EQ(open_frame(ends.client.receive, first).error().code, Errc::kAuth);
}

}  // namespace
}  // namespace drun::rendezvous
