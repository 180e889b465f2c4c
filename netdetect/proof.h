// Proof between the two ends of a probe that both know the job's token, without sending it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace drun::netdetect {

inline constexpr std::size_t kTokenBytes = 16;
inline constexpr std::size_t kNonceBytes = 16;
inline constexpr std::size_t kProofBytes = 16;
inline constexpr std::size_t kHelloBytes = kNonceBytes + kProofBytes;

// The sender of a proof. A proof is valid for one of them only.
enum class Side { kClient, kServer, kDatagram };

std::string make_nonce();

// BLAKE2b keyed with `token` over the side, the nonce and the listener's port. Empty if the token does not have
// kTokenBytes.
std::string make_proof(std::string_view token, Side side, std::string_view nonce, int port);

// Compares in constant time. False if both are empty.
bool proof_equals(std::string_view a, std::string_view b);

// The listener's reply to the first kHelloBytes of a connection, a nonce and the client's proof: its own proof of the
// nonce. Nothing if the hello does not prove the token.
std::optional<std::string> answer_hello(std::string_view hello, std::string_view token, int port);

}  // namespace drun::netdetect
