// Both ends of the handshake, and frames, with bytes that were changed on the way or come from a stranger.
#include "rendezvous/handshake.h"
#include "tests/fuzz/fuzz.h"

namespace drun::fuzz {
namespace {

using rendezvous::ClientHandshake;
using rendezvous::FrameCipher;
using rendezvous::Purpose;
using rendezvous::ServerHandshake;

const rendezvous::JobKey kKey{1, 2, 3};

// Changes, cuts or replaces a message. True if it is another one now.
bool tamper(Input& in, std::string& message) {
  const std::string before = message;
  switch (in.below(4)) {
    case 0:
      break;
    case 1:
      if (!message.empty()) message[in.byte() % message.size()] ^= static_cast<char>(in.byte());
      break;
    case 2:
      message.resize(in.byte());
      break;
    default:
      message = in.text();
  }
  return message != before;
}

void talk(Input& in) {
  ClientHandshake client(kKey, Purpose::kRendezvous);
  ServerHandshake server(kKey, in.below(4) == 0 ? Purpose::kPeer : Purpose::kRendezvous);
  std::string hello = client.hello();
  bool changed = tamper(in, hello);
  auto answer = server.answer(hello);
  std::string reply = answer ? *answer : rendezvous::version_refusal(hello);
  expect(reply.empty() || reply.size() == rendezvous::kServerHelloBytes, "a reply has one size");
  changed = tamper(in, reply) || changed;
  auto proof = client.finish(reply);
  expect(!proof || (answer && !changed), "only the server that was asked is believed");
  std::string sent = proof.value_or("");
  const bool proof_changed = tamper(in, sent);
  const bool verified = server.verify(sent).has_value();
  expect(verified == (proof && !proof_changed), "only the client's own proof is believed");
  if (!verified) return;
  auto at_client = client.streams(), at_server = server.streams();
  for (int i = 0; i < 3; ++i) {
    const std::string plain(in.text());
    std::string frame = at_client.send.seal(plain);
    const bool frame_changed = tamper(in, frame);
    const auto n_bytes = FrameCipher::body_size(std::string_view(frame).substr(0, 4));
    if (!n_bytes || frame.size() != 4 + *n_bytes) return;
    const auto opened = at_server.receive.open(std::string_view(frame).substr(4));
    expect(opened.has_value() == !frame_changed, "only sealed frames are opened");
    if (!opened) return;
    expect(*opened == plain, "a frame carries what was sealed");
  }
}

void run(std::string_view bytes) {
  Input in(bytes);
  if (in.below(2) == 0) return talk(in);
  const std::string_view stranger = in.rest();
  (void)rendezvous::version_refusal(stranger);
  ServerHandshake server(kKey, Purpose::kRendezvous);
  if (server.answer(stranger.substr(0, rendezvous::kClientHelloBytes))) {
    expect(!server.verify(stranger.substr(rendezvous::kClientHelloBytes)), "a stranger proves nothing");
  }
  ClientHandshake client(kKey, Purpose::kRendezvous);
  expect(!client.finish(stranger), "a stranger is no server");
  if (const auto n_bytes = FrameCipher::body_size(stranger.substr(0, 4))) {
    expect(*n_bytes <= rendezvous::kMaxFrame + 16, "a frame has bounds");
  }
  expect(!server.streams().receive.open(stranger), "a stranger's frame is not opened");
}

std::vector<std::string> seeds() {
  const std::string hello = ClientHandshake(kKey, Purpose::kRendezvous).hello();
  std::string newer = hello;
  newer[5] = 9;
  return {
      Script().byte(0).byte(1).byte(0).byte(0).byte(0).text("one").byte(0).text("").byte(0).text("three").byte(0),
      Script().byte(0).byte(1).byte(1).byte(4).byte(7),
      Script().byte(0).byte(1).byte(0).byte(0).byte(0).text("one").byte(1).byte(9).byte(1),
      Script().byte(1).raw(hello).raw(std::string(32, 'p')),
      Script().byte(1).raw(newer),
      Script().byte(1).raw(rendezvous::version_refusal(newer)),
      Script().byte(1).raw(std::string("\0\0\0\x20", 4)).raw(std::string(32, 'x')),
  };
}

const Target kTarget("rendezvous_handshake", run, seeds);

}  // namespace
}  // namespace drun::fuzz
