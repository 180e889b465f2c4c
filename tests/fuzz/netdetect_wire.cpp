// The first bytes that the listeners of probes and link measurements read, from anybody who can reach them.
#include "netdetect/link_wire.h"

#include "netdetect/link_target.h"
#include "netdetect/mtu_datagram.h"
#include "netdetect/proof.h"
#include "tests/fuzz/fuzz.h"

namespace drun::fuzz {
namespace {

using namespace netdetect;

constexpr std::string_view kToken = "sixteen bytes ok";
constexpr std::string_view kSession = "session of 16 by";
constexpr int kPort = 4711;

std::string honest_hello() {
  const std::string nonce(kNonceBytes, 'n');
  return nonce + make_proof(kToken, Side::kClient, nonce, kPort);
}

void run(std::string_view bytes) {
  Input in(bytes);
  const std::size_t kind = in.below(4);
  const std::string_view rest = in.rest();
  if (kind == 0) {
    const auto answer = answer_hello(rest, kToken, kPort);
    const auto proof = make_proof(kToken, Side::kClient, rest.substr(0, kNonceBytes), kPort);
    const bool proves = rest.size() == kHelloBytes && rest.substr(kNonceBytes) == proof;
    expect(answer.has_value() == proves, "only a proof of the token is answered");
    expect(!answer || answer->size() == kProofBytes, "an answer is a proof");
  } else if (kind == 1) {
    const auto order = decode_order(rest);
    if (!order) return;
    expect(order->session.size() == kSessionBytes, "an order names its session");
    if (order->kind == LinkOrderKind::kStreams) {
      expect(order->n_streams >= 1 && order->n_streams <= kMaxStreams, "the streams of an order are bounded");
      expect(order->time_ms >= 1 && order->time_ms <= kMaxLinkTime, "the time of an order is bounded");
    }
    const std::string encoded = encode_order(*order);
    const auto again = decode_order(encoded);
    expect(encoded.size() == rest.size() && again && encode_order(*again) == encoded, "an order is decoded as it was");
  } else if (kind == 2 && rest.size() == kLinkFiguresBytes) {
    const std::string encoded = encode_figures(decode_figures(rest));
    expect(encoded.size() == rest.size(), "figures have one size");
  } else {
    const std::string honest = mtu_datagram(kToken, kSession, kPort, rest.size());
    const bool valid = rest.substr(0, kSessionBytes + kProofBytes) == honest.substr(0, kSessionBytes + kProofBytes);
    expect(is_mtu_datagram(rest, kToken, kSession, kPort) == valid, "only datagrams of the session count");
    expect(!answer_hello(honest.substr(0, kHelloBytes), kToken, kPort), "a datagram is no hello");
  }
}

std::vector<std::string> seeds() {
  LinkOrder echo, mtu, streams;
  echo.session = mtu.session = streams.session = std::string(kSessionBytes, 's');
  mtu.kind = LinkOrderKind::kMtu;
  mtu.udp_port = 4712;
  streams.kind = LinkOrderKind::kStreams;
  streams.n_streams = 4;
  streams.client_sends = streams.server_sends = true;
  streams.time_ms = 500;
  LinkFigures figures;
  figures.bits_per_second = 1e10;
  figures.seconds = 0.5;
  figures.n_segments = 1000;
  return {
      Script().byte(0).raw(honest_hello()),          Script().byte(1).raw(encode_order(echo)),
      Script().byte(1).raw(encode_order(mtu)),       Script().byte(1).raw(encode_order(streams)),
      Script().byte(2).raw(encode_figures(figures)), Script().byte(3).raw(mtu_datagram(kToken, kSession, kPort, 100)),
  };
}

const Target kTarget("netdetect_wire", run, seeds);

}  // namespace
}  // namespace drun::fuzz
