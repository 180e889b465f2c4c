// Requests to Horovod's rendezvous, of anybody, in any pieces; and the store that they change.
#include "rendezvous/horovod_request.h"

#include <memory>
#include <utility>

#include "rendezvous/horovod_store.h"
#include "tests/fuzz/fuzz.h"

namespace drun::fuzz {
namespace {

using rendezvous::HorovodRequest;
using rendezvous::HorovodRequestReader;
using State = HorovodRequestReader::State;

constexpr const char* kToken = "0123456789abcdef";
constexpr std::size_t kStoreBytes = 64, kStoreKeys = 4;

void check_complete(HorovodRequestReader& reader) {
  const HorovodRequest& request = reader.request();
  expect(reader.has_token(), "only a request with the token is complete");
  expect(!request.scope.empty() && request.scope.size() <= rendezvous::kMaxHorovodName, "a scope has bounds");
  expect(!request.key.empty() && request.key.size() <= rendezvous::kMaxHorovodName, "a key has bounds");
  expect(request.body.size() <= rendezvous::kMaxHorovodValue, "a value has bounds");
}

// Applies a request to the store, as horovod_server.cpp does.
void apply(HorovodRequest& request, rendezvous::HorovodStore& store) {
  if (request.method == HorovodRequest::Method::kDelete) store.finish(request.scope, request.key);
  if (request.method == HorovodRequest::Method::kPut) {
    const std::string body = request.body;
    const bool put = store.put(request.scope, request.key, std::make_shared<const std::string>(body));
    expect(!put || *store.get(request.scope, request.key) == body, "a value that was put is there");
  }
  expect(store.bytes() <= kStoreBytes && store.keys() <= kStoreKeys, "the store keeps its limits");
  expect((store.keys() == 0) == (store.bytes() == 0), "an empty store counts nothing");
}

void run(std::string_view bytes) {
  Input in(bytes);
  rendezvous::HorovodStore store({{"global", 2}}, {kStoreBytes, kStoreKeys});
  for (int n = 0; n < 8 && !in.empty(); ++n) {
    const std::size_t size = 1 + in.byte();
    std::string stream;
    for (std::string_view part = in.text(); !part.empty(); part = in.text()) stream += part;
    HorovodRequestReader whole(kToken), pieces(kToken);
    whole.take(stream);
    for (std::size_t at = 0; at < stream.size(); at += size) pieces.take(std::string_view(stream).substr(at, size));
    // Bytes that are not HTTP may be refused at once, or when the head is complete.
    expect((whole.state() == State::kComplete) == (pieces.state() == State::kComplete),
           "cuts of a stream change nothing");
    expect((whole.state() == State::kRefused) == (whole.refusal() != 0), "a refusal has a status");
    if (whole.state() != State::kComplete) continue;
    check_complete(whole);
    expect(whole.request().body == pieces.request().body, "cuts of a body change nothing");
    apply(whole.request(), store);
  }
}

std::vector<std::string> seeds() {
  const std::string path = " /" + std::string(kToken) + ":1/global/";
  const auto request = [&path](const std::string& method, const std::string& key, const std::string& body) {
    return method + path + key + " HTTP/1.1\r\nHost: 10.0.0.1\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
  };
  const std::string chunked = "PUT" + path + "0 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
  return {
      Script()
          .byte(9)
          .text(request("PUT", "0", "ab"))
          .text("")
          .byte(200)
          .text(request("PUT", "1", ""))
          .text("")
          .byte(0)
          .text(request("GET", "0", ""))
          .text("")
          .byte(50)
          .text(request("DELETE", "0", ""))
          .text("")
          .byte(50)
          .text(request("DELETE", "1", "")),
      Script().byte(3).text(chunked),
      Script().byte(3).text("GET /global/0 HTTP/1.1\r\n\r\n"),
      Script().byte(3).text("POST" + path + "0 HTTP/1.0\r\nContent-Length: 99999999\r\n\r\n"),
  };
}

const Target kTarget("horovod_request", run, seeds);

}  // namespace
}  // namespace drun::fuzz
