#include "rendezvous/horovod_request.h"

#include <gtest/gtest.h>

namespace drun::rendezvous {
namespace {

using namespace std::string_literals;

using State = HorovodRequestReader::State;
using Method = HorovodRequest::Method;

constexpr const char* kToken = "0123456789abcdef0123456789abcdef";

// As HTTPRequest.hpp of libhorovod writes it.
std::string request(const std::string& method, const std::string& path, const std::string& body = "") {
  return method + " " + path + " HTTP/1.1\r\nHost: 10.0.0.1\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

std::string path(const std::string& rest) { return "/" + std::string(kToken) + ":4711/" + rest; }

// Returns the status with which a request is refused; 0: it is not.
int refusal_of(const std::string& bytes) {
  HorovodRequestReader reader(kToken);
  reader.take(bytes);
  return reader.refusal();
}

TEST(HorovodRequest, IsReadInAnyPieces) {
  const std::string body("\0\r\n\r\nGET /", 10);
  const std::string whole = request("PUT", path("local_node1/12"), body);
  for (std::size_t size = 1; size <= whole.size(); ++size) {
    HorovodRequestReader reader(kToken);
    for (std::size_t at = 0; at < whole.size(); at += size) {
      ASSERT_EQ(reader.state(), State::kIncomplete) << size << " at " << at;
      reader.take(std::string_view(whole).substr(at, size));
    }
    ASSERT_EQ(reader.state(), State::kComplete) << size;
    EXPECT_EQ(reader.request().method, Method::kPut);
    EXPECT_EQ(reader.request().scope, "local_node1");
    EXPECT_EQ(reader.request().key, "12");
    EXPECT_EQ(reader.request().body, body);
  }
}

TEST(HorovodRequest, HasTheMethodsOfTheClient) {
  for (const auto& [name, method] : std::map<std::string, Method>{{"GET", Method::kGet}, {"DELETE", Method::kDelete}}) {
    HorovodRequestReader reader(kToken);
    EXPECT_EQ(reader.take(request(name, path("global/rank_3"))), State::kComplete) << name;
    EXPECT_EQ(reader.request().method, method);
    EXPECT_EQ(reader.request().key, "rank_3");
  }
  EXPECT_EQ(refusal_of(request("POST", path("global/1"), "x")), 405);
  EXPECT_EQ(refusal_of(request("OPTIONS", path("global/1"))), 405);
}

// horovod/runner/http/http_client.py, by urllib.
TEST(HorovodRequest, OfPythonIsRead) {
  HorovodRequestReader reader(kToken);
  const std::string bytes = "PUT " + path("worker_addresses/a.b:0") +
                            " HTTP/1.1\r\nAccept-Encoding: identity\r\nContent-Type: "
                            "application/x-www-form-urlencoded\r\nContent-Length: 4\r\nHost: 10.0.0.1:4711\r\n"
                            "User-Agent: Python-urllib/3.8\r\nConnection: close\r\n\r\nabcd";
  EXPECT_EQ(reader.take(bytes), State::kComplete);
  EXPECT_EQ(reader.request().key, "a.b:0");
  EXPECT_EQ(reader.request().body, "abcd");
}

TEST(HorovodRequest, WithoutTheTokenIsRefused) {
  const std::string token = kToken;
  for (const std::string& target : {"/global/0"s, "/"s, "*"s, "/x" + token + ":1/global/0", "/" + token + "x/global/0",
                                    "/" + token.substr(0, 31) + "/global/0", "//" + token + ":1/global/0",
                                    "/" + std::string(32, '0') + "/global/0", "http://a/" + token + "/global/0"}) {
    HorovodRequestReader reader(kToken);
    EXPECT_EQ(reader.take(request("GET", target)), State::kRefused) << target;
    EXPECT_EQ(reader.refusal(), 403) << target;
    EXPECT_FALSE(reader.has_token()) << target;
  }
  EXPECT_EQ(refusal_of(request("GET", "/" + token + "/global/0")), 0);  // the port is not compared
  // Before a byte of the body is there.
  HorovodRequestReader reader(kToken);
  EXPECT_EQ(reader.take("PUT /global/0 HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n"), State::kRefused);
  EXPECT_EQ(reader.take("more"), State::kRefused);
}

TEST(HorovodRequest, WithAnotherPathIsRefused) {
  for (const std::string& rest : {"global"s, "global/"s, "/0"s, "a/b/c"s, "global/" + std::string(513, '1')}) {
    EXPECT_EQ(refusal_of(request("GET", path(rest))), 400) << rest;
  }
  EXPECT_EQ(refusal_of(request("GET", path("global/" + std::string(512, '1')))), 0);
}

TEST(HorovodRequest, BeyondTheLimitsIsRefused) {
  EXPECT_EQ(refusal_of(request("PUT", path("global/0"), std::string(kMaxHorovodValue, 'x'))), 0);
  EXPECT_EQ(refusal_of("PUT " + path("global/0") + " HTTP/1.1\r\nContent-Length: 1048577\r\n\r\n"), 413);
  EXPECT_EQ(refusal_of("PUT " + path("global/0") + " HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n"), 400);
  EXPECT_EQ(refusal_of("GET " + path("global/0") + " HTTP/1.1\r\nX: " + std::string(kMaxHorovodHead, 'x')), 431);
  HorovodRequestReader chunks(kToken);
  chunks.take("PUT " + path("global/0") + " HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
  while (chunks.state() == State::kIncomplete) chunks.take("8000\r\n" + std::string(0x8000, 'x') + "\r\n");
  EXPECT_EQ(chunks.refusal(), 413);
}

TEST(HorovodRequest, ThatIsNoHttpIsRefused) {
  for (const std::string& bytes : {"DRUN\0\3\1\0"s + std::string(32, 'n'), "\x16\x03\x01\x02\r\n\r\n"s, "GET\r\n\r\n"s,
                                   "GET " + path("global/0") + " HTTP/9.9\r\n\r\n", "GET /a b HTTP/1.1\r\n\r\n"s}) {
    EXPECT_EQ(refusal_of(bytes), 400) << bytes;
  }
}

TEST(HorovodRequest, AddressMakesTheClientSendTheToken) {
  // http_store.cc: "http://" + address + ":" + port + "/" + scope + "/" + key; HTTPRequest.hpp cuts at the first '/'
  // after
  // "//", then the host at its first ':'.
  const std::string url =
      "http://" + horovod_rendezvous_address("10.0.0.1", 4711, kToken) + ":4711/" + "global" + "/" + "0";
  const std::string rest = url.substr(7);
  EXPECT_EQ(rest.substr(0, rest.find('/')), "10.0.0.1:4711");
  EXPECT_EQ(refusal_of(request("GET", rest.substr(rest.find('/')))), 0);
}

// The client searches for "Content-Length" as it is written here, and without it takes the first packet for all.
TEST(HorovodRequest, AnswersHaveALength) {
  EXPECT_EQ(horovod_response_head(200, 7), "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(horovod_response_head(404, 0), "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}

}  // namespace
}  // namespace drun::rendezvous
