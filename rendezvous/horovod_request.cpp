#include "rendezvous/horovod_request.h"

#include <sodium.h>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <utility>

#include "base/text.h"

namespace drun::rendezvous {

namespace http = boost::beast::http;

namespace {

constexpr int kBadRequest = 400, kForbidden = 403, kMethodNotAllowed = 405, kTooLarge = 413, kHeadTooLarge = 431;

// The error of the parser as a status.
int status_of(const boost::system::error_code& ec) {
  if (ec == http::error::body_limit) return kTooLarge;
  if (ec == http::error::header_limit) return kHeadTooLarge;
  return kBadRequest;
}

std::string_view text_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case kForbidden:
      return "Forbidden";
    case 404:
      return "Not Found";
    case kMethodNotAllowed:
      return "Method Not Allowed";
    case kTooLarge:
      return "Payload Too Large";
    case kHeadTooLarge:
      return "Request Header Fields Too Large";
    case 507:
      return "Insufficient Storage";
    default:
      return "Bad Request";
  }
}

bool has_secret(std::string_view word, const std::string& token) {
  return word.size() >= token.size() && (word.size() == token.size() || word[token.size()] == ':') &&
         sodium_memcmp(word.data(), token.data(), token.size()) == 0;
}

}  // namespace

struct HorovodRequestReader::Parser : http::request_parser<http::string_body> {};

HorovodRequestReader::HorovodRequestReader(std::string token)
    : token_(std::move(token)), parser_(std::make_unique<Parser>()) {
  parser_->header_limit(kMaxHorovodHead);
  parser_->body_limit(kMaxHorovodValue);
}

HorovodRequestReader::~HorovodRequestReader() = default;

HorovodRequestReader::State HorovodRequestReader::refuse(int status) {
  refusal_ = status;
  return state_ = State::kRefused;
}

// Method, token and names: all that is known before the body.
HorovodRequestReader::State HorovodRequestReader::check_head() {
  const auto& head = parser_->get();
  const auto target = head.target();
  const auto words = split(std::string_view(target.data(), target.size()), '/');
  if (words.size() < 2 || !words[0].empty() || !has_secret(words[1], token_)) return refuse(kForbidden);
  has_token_ = true;
  if (head.method() == http::verb::get) {
    request_.method = HorovodRequest::Method::kGet;
  } else if (head.method() == http::verb::put) {
    request_.method = HorovodRequest::Method::kPut;
  } else if (head.method() == http::verb::delete_) {
    request_.method = HorovodRequest::Method::kDelete;
  } else {
    return refuse(kMethodNotAllowed);
  }
  if (words.size() != 4) return refuse(kBadRequest);
  for (const auto name : {words[2], words[3]}) {
    if (name.empty() || name.size() > kMaxHorovodName) return refuse(kBadRequest);
  }
  request_.scope = std::string(words[2]);
  request_.key = std::string(words[3]);
  return State::kIncomplete;
}

HorovodRequestReader::State HorovodRequestReader::take(std::string_view bytes) {
  if (state_ != State::kIncomplete) return state_;
  pending_.append(bytes);
  std::size_t n_used = 0;
  while (state_ == State::kIncomplete && n_used < pending_.size()) {
    const bool had_head = parser_->is_header_done();
    boost::system::error_code ec;
    // Each call takes the whole head, or nothing while it is incomplete, or a part of the body.
    n_used += parser_->put(boost::asio::buffer(pending_.data() + n_used, pending_.size() - n_used), ec);
    if (ec == http::error::need_more) break;
    if (ec) return refuse(status_of(ec));
    if (!had_head && parser_->is_header_done() && check_head() == State::kRefused) return state_;
    if (parser_->is_done()) {
      request_.body = std::move(parser_->get().body());
      state_ = State::kComplete;
    }
  }
  pending_.erase(0, n_used);
  return state_;
}

std::string horovod_response_head(int status, std::size_t n_body) {
  return "HTTP/1.1 " + std::to_string(status) + " " + std::string(text_of(status)) +
         "\r\nContent-Length: " + std::to_string(n_body) + "\r\nConnection: close\r\n\r\n";
}

std::string horovod_rendezvous_address(const std::string& address, int port, const std::string& token) {
  return address + ":" + std::to_string(port) + "/" + token;
}

}  // namespace drun::rendezvous
