// The requests by which the ranks of a real Horovod connect to each other at their start, made by one thread in the
// order of horovod/common/gloo (http_store.cc, gloo_context.cc) and of Gloo's rendezvous/context.cc. For a test, and
// for perf/horovod-start.
#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <charconv>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/asio.h"
#include "rendezvous/horovod_server.h"
#include "tests/integration/rendezvous/simulated_job.h"

namespace drun::rendezvous::simulated {

struct HttpReply {
  int status = 0;  // 0: the connection ended before the reply was complete
  std::string body;
};

// As HTTPRequest.hpp does: the fields and their order, a connection for each request.
inline std::string http_request(const std::string& method, const std::string& path, const std::string& body) {
  return method + " " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

inline Task<HttpReply> http_exchange(int port, std::string bytes) {
  Tcp::socket socket(co_await asio::this_coro::executor);
  const auto server = at(port);
  const auto [connect_ec] = co_await socket.async_connect(server, as_result);
  if (connect_ec) co_return HttpReply();
  const auto out = asio::buffer(bytes);
  const auto [write_ec, n_written] = co_await asio::async_write(socket, out, as_result);
  std::string answer;
  std::array<char, 4096> some;  // as there
  std::size_t head = std::string::npos, total = std::string::npos;
  while (!write_ec && answer.size() < total) {
    const auto in = asio::buffer(some);
    const auto [read_ec, n] = co_await socket.async_read_some(in, as_result);
    if (read_ec) break;
    answer.append(some.data(), n);
    if (total != std::string::npos || (head = answer.find("\r\n\r\n")) == std::string::npos) continue;
    const auto field = answer.find("Content-Length: ");
    if (field == std::string::npos || field > head) break;
    std::size_t n_body = 0;
    std::from_chars(answer.data() + field + 16, answer.data() + head, n_body);
    total = head + 4 + n_body;
  }
  if (answer.size() < 12 || answer.size() != total) co_return HttpReply();
  HttpReply reply;
  reply.status = std::stoi(answer.substr(9, 3));
  reply.body = answer.substr(head + 4);
  co_return reply;
}

// A start of n_ranks on hosts of `per_host`.
struct HorovodStart {
  int n_ranks = 64, per_host = 8;
  int port = 0;
  std::string prefix;  // of each path: "" or "/<token>:<port>"
  int number = 1;      // of the start: the addresses are others each time
  // Results
  int n_requests = 0, n_polls = 0, n_wrong = 0, n_done = 0;  // n_polls: requests for an address that was not there
  std::map<std::string, int> n_met;                          // by scope: Gloo's barrier, which is not made here
  std::map<std::string, std::unique_ptr<Event>> all_met;
};

inline std::string addresses_of(const HorovodStart& start, const std::string& scope, int rank, int size) {
  std::string out(136 * static_cast<std::size_t>(size - 1), '\0');  // as long as Gloo's
  const std::string mark = std::to_string(start.number) + " " + scope + " " + std::to_string(rank);
  out.replace(0, std::min(out.size(), mark.size()), mark, 0, std::min(out.size(), mark.size()));
  return out;
}

inline Task<HttpReply> ask(HorovodStart& start, std::string method, std::string path, std::string body) {
  ++start.n_requests;
  co_return co_await http_exchange(start.port, http_request(method, start.prefix + "/" + path, body));
}

// Waits until the addresses of `other` are there, and compares them.
inline Task<void> connect_to(HorovodStart& start, std::string scope, int other, int size) {
  const std::string path = scope + "/" + std::to_string(other);
  for (;;) {
    const HttpReply found = co_await ask(start, "GET", path, "");
    if (found.status == 200) break;
    if (found.status != 404) ++start.n_wrong;
    if (found.status == 0) co_return;
    ++start.n_polls;
    co_await sleep_until(Clock::now() + 10ms);
  }
  const HttpReply addresses = co_await ask(start, "GET", path, "");
  if (addresses.status != 200 || addresses.body != addresses_of(start, scope, other, size)) ++start.n_wrong;
}

inline Task<void> meet(HorovodStart& start, const std::string& scope, int size) {
  auto& all_met = start.all_met[scope];
  if (!all_met) all_met = std::make_unique<Event>(co_await asio::this_coro::executor);
  Event& event = *all_met;
  if (++start.n_met[scope] == size) event.notify();
  co_await event.wait();
}

inline Task<void> connect_full_mesh(HorovodStart& start, std::string scope, int rank, int size) {
  const std::string number = std::to_string(rank);
  const HttpReply named = co_await ask(start, "PUT", scope + "/rank_" + number, "node");
  if (named.status != 200) ++start.n_wrong;
  for (int i = 0; i < rank; ++i) {
    const HttpReply name = co_await ask(start, "GET", scope + "/rank_" + std::to_string(i), "");
    if (name.status != 404 && (name.status != 200 || name.body != "node")) ++start.n_wrong;
  }
  const HttpReply put = co_await ask(start, "PUT", scope + "/" + number, addresses_of(start, scope, rank, size));
  if (put.status != 200) ++start.n_wrong;
  for (int i = 0; i < size; ++i) {
    if (i != rank) co_await connect_to(start, scope, i, size);
  }
  co_await meet(start, scope, size);
  const HttpReply finished = co_await ask(start, "DELETE", scope + "/" + number, "");
  if (finished.status != 200) ++start.n_wrong;
}

// The contexts of the job, and then those of its process set of all ranks.
inline Task<void> start_rank(HorovodStart& start, int rank) {
  const int local = rank % start.per_host, host = rank / start.per_host;
  for (const std::string set : {"", "_process_set_hash_1e9d548172549547"}) {
    const std::string local_scope = "local_node" + std::to_string(host) + set;
    const std::string cross_scope = "cross_" + std::to_string(local) + set;
    co_await connect_full_mesh(start, "global" + set, rank, start.n_ranks);
    co_await connect_full_mesh(start, local_scope, local, start.per_host);
    co_await connect_full_mesh(start, cross_scope, host, start.n_ranks / start.per_host);
  }
  ++start.n_done;
}

// 2.5 n^2 + 0.5 n for each scope of n ranks, twice.
inline int requests_without_polls(const HorovodStart& start) {
  const auto of_scope = [](int n) { return (5 * n * n + n) / 2; };
  const int n_hosts = start.n_ranks / start.per_host;
  return 2 * (of_scope(start.n_ranks) + n_hosts * of_scope(start.per_host) + start.per_host * of_scope(n_hosts));
}

inline Task<void> start_all(HorovodStart& start) {
  TaskGroup tasks(co_await asio::this_coro::executor);
  for (int rank = 0; rank < start.n_ranks; ++rank) tasks.spawn(start_rank(start, rank));
  co_await tasks.join();
}

inline ScopeSizes scopes_of(const HorovodStart& start) {
  ScopeSizes out = {{"global", start.n_ranks}};
  for (int host = 0; host < start.n_ranks / start.per_host; ++host) {
    out["local_node" + std::to_string(host)] = start.per_host;
  }
  for (int local = 0; local < start.per_host; ++local) {
    out["cross_" + std::to_string(local)] = start.n_ranks / start.per_host;
  }
  return out;
}

inline Task<void> serve_horovod_until_end(HorovodServerOptions options, int out, int end) {
  const auto executor = co_await asio::this_coro::executor;
  const auto server = HorovodServer::create(executor, std::move(options));
  co_await measure_until_end(*server, out, end);
}

// A process with drun's server.
inline std::function<void(int, int)> horovod_server_process(HorovodServerOptions options) {
  return [options](int out, int end) {
    asio::io_context io(1);
    run_on_loop(io, serve_horovod_until_end(options, out, end));
  };
}

}  // namespace drun::rendezvous::simulated
