// How long a rendezvous takes for many ranks, in the way of drun or of Redis. perf/rendezvous compiles and runs it:
//
//   rendezvous drun RANKS            a server of drun's in a process of its own
//   rendezvous redis RANKS PORT      the Redis at 127.0.0.1:PORT, which must be empty
//
// The ranks are connections of one process, in one thread. Each one joins (drun: a proof of the job's key, and
// encrypted from then on; Redis: a plain connection), and publishes and learns what a job needs: its address, which the
// others could read by its rank; the 128-byte id of NCCL, which rank 0 has; and a barrier, which ends when all have
// come. Prints: milliseconds until all have joined, until all have the id, until all have left the barrier; the
// server's peak memory in KB (drun only).
#include <cstdio>
#include <cstdlib>

#include "tests/integration/rendezvous/simulated_job.h"

namespace {

using namespace drun;                         // NOLINT(google-build-using-namespace): a program of one file
using namespace drun::rendezvous;             // NOLINT(google-build-using-namespace)
using namespace drun::rendezvous::simulated;  // NOLINT(google-build-using-namespace)

const std::string kId(128, 'i');

struct Progress {
  int n_ranks = 0;
  int n_joined = 0, n_with_id = 0, n_met = 0;
  Deadline begin, all_joined, all_with_id, all_met;
  void count(int& n, Deadline& all) const {
    if (++n == n_ranks) all = Clock::now();
  }
  long long ms(Deadline at) const {
    return n_met == n_ranks ? std::chrono::duration_cast<std::chrono::milliseconds>(at - begin).count() : -1;
  }
};

// drun

Task<bool> ask(Rank& rank, ClientMessage message) {
  const bool sent = co_await rank.send(std::move(message));
  if (!sent) co_return false;
  const auto reply = co_await rank.receive();
  if (!reply) co_return false;
  const auto* value = std::get_if<ValueReply>(&*reply);
  co_return std::holds_alternative<DoneReply>(*reply) || (value != nullptr && *value->value == kId);
}

Task<void> run_rank(Rank& rank, int number, Progress& progress) {
  int n_retries = 0;
  bool good = co_await rank.join(Clock::now() + 60s, n_retries);
  if (!good) co_return;
  progress.count(progress.n_joined, progress.all_joined);
  SetMessage address;
  address.request = 1;
  address.key = "address/" + std::to_string(number);
  address.value = "10.0.0.1:" + std::to_string(10000 + number);
  good = co_await ask(rank, std::move(address));
  if (!good) co_return;
  if (number == 0) {
    NcclPutMessage put;
    put.request = 2;
    put.communicator = "world";
    put.id_or_reason = kId;
    good = co_await ask(rank, std::move(put));
  } else {
    NcclGetMessage get;
    get.request = 2;
    get.communicator = "world";
    get.timeout_ms = kLongTimeoutMs;
    good = co_await ask(rank, std::move(get));
  }
  if (!good) co_return;
  progress.count(progress.n_with_id, progress.all_with_id);
  BarrierMessage barrier;
  barrier.request = 3;
  barrier.name = "all";
  barrier.timeout_ms = kLongTimeoutMs;
  good = co_await ask(rank, std::move(barrier));
  if (good) progress.count(progress.n_met, progress.all_met);
}

Task<void> run_all_by_drun(const JobKey& key, int port, Progress& progress) {
  const auto executor = co_await asio::this_coro::executor;
  TaskGroup tasks(executor);
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int i = 0; i < progress.n_ranks; ++i) {
    ranks.push_back(std::make_unique<Rank>(executor, key, i, port));
    tasks.spawn(run_rank(*ranks.back(), i, progress));
  }
  co_await tasks.join();
}

// Redis: https://redis.io/docs/latest/develop/reference/protocol-spec

// GCC 12 can't compile lists in braces in a coroutine.
template <typename... Words>
std::vector<std::string> command(Words... words) {
  std::vector<std::string> out;
  (out.push_back(std::move(words)), ...);
  return out;
}

class RedisClient {
 public:
  explicit RedisClient(const asio::any_io_executor& executor) : socket_(executor) {}

  Task<bool> connect(int port) {
    const auto server = at(port);
    const auto [ec] = co_await socket_.async_connect(server, as_result);
    if (!ec) tune_tcp(socket_.native_handle());
    co_return !ec;
  }
  // Sends a command; returns its reply: a status, a number or a string; an array's last string.
  Task<std::optional<std::string>> ask(std::vector<std::string> words) {
    std::string bytes = "*" + std::to_string(words.size()) + "\r\n";
    for (const auto& word : words) bytes += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
    const auto buffer = asio::buffer(bytes);
    const auto [ec, n] = co_await asio::async_write(socket_, buffer, as_result);
    if (ec) co_return std::nullopt;
    co_return co_await reply();
  }
  Task<std::optional<std::string>> reply() {
    auto line = co_await this->line();
    int n_parts = 1;
    if (line && !line->empty() && (*line)[0] == '*') {
      n_parts = std::atoi(line->c_str() + 1);
      line = co_await this->line();
    }
    for (int i = 1;; ++i) {
      if (!line || line->empty() || (*line)[0] == '-') co_return std::nullopt;
      std::string value = line->substr(1);
      if ((*line)[0] == '$') {
        auto text = co_await exactly(static_cast<std::size_t>(std::atoi(value.c_str())) + 2);
        if (!text) co_return std::nullopt;
        value = text->substr(0, text->size() - 2);
      }
      if (i == n_parts) co_return value;
      line = co_await this->line();
    }
  }

 private:
  Task<bool> more() {
    std::array<char, 1024> bytes;
    const auto buffer = asio::buffer(bytes);
    const auto [ec, n] = co_await socket_.async_read_some(buffer, as_result);
    if (!ec) bytes_.append(bytes.data(), n);
    co_return !ec;
  }
  Task<std::optional<std::string>> line() {
    std::size_t end = 0;
    while ((end = bytes_.find("\r\n")) == std::string::npos) {
      const bool came = co_await more();
      if (!came) co_return std::nullopt;
    }
    std::string out = bytes_.substr(0, end);
    bytes_.erase(0, end + 2);
    co_return out;
  }
  Task<std::optional<std::string>> exactly(std::size_t n) {
    while (bytes_.size() < n) {
      const bool came = co_await more();
      if (!came) co_return std::nullopt;
    }
    std::string out = bytes_.substr(0, n);
    bytes_.erase(0, n);
    co_return out;
  }

  Tcp::socket socket_;
  std::string bytes_;
};

Task<std::optional<std::string>> give_all(RedisClient& client, std::string list, std::string value, int n) {
  std::vector<std::string> push = command("RPUSH", std::move(list));
  push.insert(push.end(), static_cast<std::size_t>(n), value);
  co_return co_await client.ask(std::move(push));
}

// The id and the end of the barrier are in lists: each client takes one element by BLPOP, and does not poll.
Task<void> run_redis_client(RedisClient& client, int number, int port, Progress& progress) {
  bool good = co_await client.connect(port);
  if (!good) co_return;
  std::vector<std::string> words = command("PING");
  auto reply = co_await client.ask(std::move(words));
  if (!reply) co_return;
  progress.count(progress.n_joined, progress.all_joined);
  words = command("SET", "address/" + std::to_string(number), "10.0.0.1:" + std::to_string(10000 + number));
  reply = co_await client.ask(std::move(words));
  if (!reply) co_return;
  if (number == 0) {
    reply = co_await give_all(client, std::string("id"), kId, progress.n_ranks - 1);
  } else {
    words = command("BLPOP", "id", "60");
    reply = co_await client.ask(std::move(words));
    if (!reply || *reply != kId) co_return;
  }
  progress.count(progress.n_with_id, progress.all_with_id);
  words = command("INCR", "arrived");
  reply = co_await client.ask(std::move(words));
  if (!reply) co_return;
  if (*reply == std::to_string(progress.n_ranks)) {
    reply = co_await give_all(client, std::string("go"), std::string("1"), progress.n_ranks - 1);
  } else {
    words = command("BLPOP", "go", "60");
    reply = co_await client.ask(std::move(words));
  }
  if (reply) progress.count(progress.n_met, progress.all_met);
}

Task<void> run_all_by_redis(int port, Progress& progress) {
  const auto executor = co_await asio::this_coro::executor;
  TaskGroup tasks(executor);
  std::vector<std::unique_ptr<RedisClient>> clients;
  for (int i = 0; i < progress.n_ranks; ++i) {
    clients.push_back(std::make_unique<RedisClient>(executor));
    tasks.spawn(run_redis_client(*clients.back(), i, port, progress));
  }
  co_await tasks.join();
}

int report(const Progress& progress, long long kb) {
  std::printf("%lld %lld %lld %lld\n", progress.ms(progress.all_joined), progress.ms(progress.all_with_id),
              progress.ms(progress.all_met), kb);
  return progress.n_met == progress.n_ranks ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string way = argc > 2 ? argv[1] : "";
  Progress progress;
  progress.n_ranks = argc > 2 ? std::atoi(argv[2]) : 0;
  if ((way != "drun" && way != "redis") || progress.n_ranks < 2 || (way == "redis" && argc != 4)) {
    std::fputs("usage: rendezvous drun RANKS | rendezvous redis RANKS PORT\n", stderr);
    return 2;
  }
  if (raise_open_file_limit() < static_cast<std::size_t>(progress.n_ranks) + 100) {
    std::fputs("rendezvous: too few open files are allowed\n", stderr);
    return 1;
  }
  asio::io_context io(1);
  if (way == "redis") {
    progress.begin = Clock::now();
    run_on_loop(io, run_all_by_redis(std::atoi(argv[3]), progress));
    return report(progress, 0);
  }
  const JobKey key = make_job_key();
  Child server(server_process(key, progress.n_ranks));
  const int port = static_cast<int>(server.number());
  progress.begin = Clock::now();
  run_on_loop(io, run_all_by_drun(key, port, progress));
  server.end();
  (void)server.number();  // lateness
  return report(progress, server.number());
}
