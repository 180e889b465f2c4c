#include "netdetect/proof.h"

#include <sodium.h>

#include <cstdint>

#include "base/bytes.h"

namespace drun::netdetect {
namespace {

const char* label(Side side) {
  switch (side) {
    case Side::kClient:
      return "drun probe client";
    case Side::kServer:
      return "drun probe server";
    case Side::kDatagram:
      return "drun probe datagram";
  }
  return "";
}

}  // namespace

std::string make_nonce() {
  std::string nonce(kNonceBytes, '\0');
  if (::sodium_init() < 0) return nonce;  // only without a random source, where randombytes would abort anyway
  ::randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

std::string make_proof(std::string_view token, Side side, std::string_view nonce, int port) {
  if (token.size() != kTokenBytes) return "";
  ByteWriter message;
  message.str(label(side));
  message.str(nonce);
  message.u16(static_cast<std::uint16_t>(port));
  const std::string& input = message.bytes();
  std::string proof(kProofBytes, '\0');
  ::crypto_generichash(reinterpret_cast<unsigned char*>(proof.data()), proof.size(),
                       reinterpret_cast<const unsigned char*>(input.data()), input.size(),
                       reinterpret_cast<const unsigned char*>(token.data()), token.size());
  return proof;
}

bool proof_equals(std::string_view a, std::string_view b) {
  return a.size() == b.size() && !a.empty() && ::sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::optional<std::string> answer_hello(std::string_view hello, std::string_view token, int port) {
  if (hello.size() != kHelloBytes) return std::nullopt;
  const std::string_view nonce = hello.substr(0, kNonceBytes);
  if (!proof_equals(hello.substr(kNonceBytes), make_proof(token, Side::kClient, nonce, port))) return std::nullopt;
  return make_proof(token, Side::kServer, nonce, port);
}

}  // namespace drun::netdetect
