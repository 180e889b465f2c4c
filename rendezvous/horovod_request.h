// A request to Horovod's rendezvous, read with Boost.Beast's parser for HTTP. No sockets.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace drun::rendezvous {

inline constexpr std::size_t kMaxHorovodHead = 8u << 10;   // request line and fields
inline constexpr std::size_t kMaxHorovodValue = 1u << 20;  // the body of a PUT; 136 bytes for each rank of a scope
inline constexpr std::size_t kMaxHorovodName = 512;        // a scope, or a key

struct HorovodRequest {
  enum class Method { kGet, kPut, kDelete } method = Method::kGet;
  std::string scope, key;
  std::string body;  // of a PUT
};

// Reads the bytes of one connection. Nothing of a body is kept before the path has shown the token.
class HorovodRequestReader {
 public:
  enum class State { kIncomplete, kComplete, kRefused };

  // The path of a request is /<token>[:<port>]/<scope>/<key>.
  explicit HorovodRequestReader(std::string token);
  ~HorovodRequestReader();
  HorovodRequestReader(const HorovodRequestReader&) = delete;
  HorovodRequestReader& operator=(const HorovodRequestReader&) = delete;

  // The next bytes; those after a complete request are ignored.
  State take(std::string_view bytes);
  State state() const { return state_; }
  int refusal() const { return refusal_; }  // if kRefused: the status of HTTP to answer with
  bool has_token() const { return has_token_; }
  HorovodRequest& request() { return request_; }  // if kComplete

 private:
  struct Parser;
  State refuse(int status);
  State check_head();

  std::string token_;
  std::unique_ptr<Parser> parser_;
  std::string pending_;  // not yet taken by the parser: at most a head, or what arrived at once
  State state_ = State::kIncomplete;
  int refusal_ = 0;
  bool has_token_ = false;
  HorovodRequest request_;
};

// The head of an answer. Horovod's client compares the field's name with its case, and waits for more without it.
std::string horovod_response_head(int status, std::size_t n_body);

// HOROVOD_GLOO_RENDEZVOUS_ADDR of a worker whose requests carry the token: Horovod's client puts it before
// ":<port>/<scope>/<key>", and takes the part before the first '/' for the address.
std::string horovod_rendezvous_address(const std::string& address, int port, const std::string& token);

}  // namespace drun::rendezvous
