#include "netdetect/mtu_datagram.h"

#include <algorithm>

#include "netdetect/proof.h"

namespace drun::netdetect {

std::string mtu_datagram(std::string_view token, std::string_view session, int port, std::size_t n_bytes) {
  std::string datagram(session);
  datagram += make_proof(token, Side::kDatagram, session, port);
  datagram.resize(std::max(datagram.size(), n_bytes), '\0');
  return datagram;
}

bool is_mtu_datagram(std::string_view datagram, std::string_view token, std::string_view session, int port) {
  const std::size_t n_proven = session.size() + kProofBytes;
  if (datagram.size() < n_proven || datagram.substr(0, session.size()) != session) return false;
  return proof_equals(datagram.substr(session.size(), kProofBytes), make_proof(token, Side::kDatagram, session, port));
}

}  // namespace drun::netdetect
