#include "agent/nccl_ras_client.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clean_text.h"
#include "base/text.h"

namespace drun::agent {
namespace {

constexpr std::string_view kQuestion = "status\n";
constexpr std::string_view kFirstWords = "NCCL version ";

// The endpoints on this host that NCCL may have resolved `address` to.
std::vector<asio::ip::tcp::endpoint> endpoints_of(const std::string& address) {
  const auto colon = address.rfind(':');
  if (colon == std::string::npos) return {};
  const auto port = parse_number(std::string_view(address).substr(colon + 1));
  const std::string host = address.substr(0, colon);
  if (!port || *port == 0 || *port > 65535) return {};
  const auto number = static_cast<std::uint16_t>(*port);
  const asio::ip::tcp::endpoint v4(asio::ip::address_v4::loopback(), number);
  const asio::ip::tcp::endpoint v6(asio::ip::address_v6::loopback(), number);
  if (host == "localhost") return {v4, v6};
  if (host == "127.0.0.1") return {v4};
  if (host == "[::1]") return {v6};
  return {};
}

}  // namespace

Task<bool> NcclRasClient::connect(const asio::ip::tcp::endpoint& endpoint) {
  boost::system::error_code ignored;
  socket_.close(ignored);
  const auto [failed] = co_await socket_.async_connect(endpoint, as_result);
  co_return !failed && !stopped_;
}

Task<std::string> NcclRasClient::ask(std::string address, Deadline deadline) {
  const auto executor = socket_.get_executor();
  const DeadlineGuard guard(executor, deadline, [this] { stop(); });
  const auto endpoints = endpoints_of(address);
  bool is_there = false;
  for (auto endpoint = endpoints.begin(); endpoint != endpoints.end() && !is_there && !stopped_; ++endpoint) {
    is_there = co_await connect(*endpoint);
  }
  if (!is_there) co_return std::string();
  const auto question = asio::buffer(kQuestion);
  const auto [not_asked, n_asked] = co_await asio::async_write(socket_, question, as_result);
  if (not_asked) co_return std::string();
  std::string text;
  bool is_whole = false;
  while (text.size() < kMaxText && !stopped_) {
    const auto place = asio::buffer(piece_);
    const auto [over, n_bytes] = co_await socket_.async_read_some(place, as_result);
    text.append(piece_.data(), n_bytes);
    is_whole = over == asio::error::eof;
    if (over) break;  // also at the deadline: keep what has arrived
  }
  if (!starts_with(text, kFirstWords)) co_return std::string();
  text = clean_text(std::string_view(text).substr(0, NcclRasClient::kMaxText));
  if (!is_whole) text += "\n(cut off)\n";
  co_return text;
}

void NcclRasClient::stop() {
  stopped_ = true;
  boost::system::error_code ignored;
  socket_.close(ignored);
}

}  // namespace drun::agent
