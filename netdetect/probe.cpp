#include "netdetect/probe.h"

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/units.h"
#include "netdetect/interface.h"
#include "netdetect/proof.h"

namespace drun::netdetect {
namespace {

using asio::ip::tcp;

struct Batch {
  std::vector<ProbeTarget> targets;
  std::vector<ProbeResult> results;  // by target
  std::string token;
  std::chrono::milliseconds timeout{};
  std::size_t next = 0;
};

void classify_connect_error(const boost::system::error_code& ec, ProbeResult& result) {
  namespace error = asio::error;
  result.detail = ec.message();
  if (ec == error::connection_refused) {
    result.outcome = ProbeOutcome::kRefused;
  } else if (ec == error::timed_out) {
    result.outcome = ProbeOutcome::kTimedOut;
  } else if (ec == error::host_unreachable) {
    result.outcome = ProbeOutcome::kHostUnreachable;
  } else if (ec == error::network_unreachable || ec == error::address_family_not_supported ||
             ec == boost::system::errc::address_not_available || ec == error::access_denied ||
             ec == error::no_permission) {
    result.outcome = ProbeOutcome::kUnreachable;
  } else {
    result.outcome = ProbeOutcome::kError;
  }
}

Task<ProbeResult> probe_one(ProbeTarget target, std::string token, std::chrono::milliseconds timeout) {
  ProbeResult result;
  result.id = target.id;
  const Address parsed = parse_address(target.address);
  if (parsed.bytes.empty() || target.port <= 0 || target.port > 65535 || token.size() != kTokenBytes) {
    result.detail = "not an address to probe: '" + target.address + "' port " + std::to_string(target.port);
    co_return result;
  }
  if (parsed.link_local) {
    result.outcome = ProbeOutcome::kUnreachable;
    result.detail = "link-local";
    co_return result;
  }

  const auto executor = co_await asio::this_coro::executor;
  const tcp::endpoint endpoint(asio::ip::make_address(target.address), static_cast<std::uint16_t>(target.port));
  tcp::socket socket(executor);
  const auto began = Clock::now();
  const DeadlineGuard guard(executor, began + timeout, [&socket] {
    boost::system::error_code ignored;
    socket.close(ignored);
  });

  const auto [connect_error] = co_await socket.async_connect(endpoint, as_result);
  if (guard.fired()) {
    result.outcome = ProbeOutcome::kTimedOut;
    result.detail = "no answer within " + limit_text(timeout);
    co_return result;
  }
  if (connect_error) {
    classify_connect_error(connect_error, result);
    co_return result;
  }
  boost::system::error_code local_error;
  const auto local = socket.local_endpoint(local_error);

  const std::string nonce = make_nonce();
  const std::string hello = nonce + make_proof(token, Side::kClient, nonce, target.port);
  const auto hello_buffer = asio::buffer(hello);
  co_await asio::async_write(socket, hello_buffer, as_result);  // an error shows in the read

  std::string reply(kProofBytes, '\0');
  const auto reply_buffer = asio::buffer(reply);
  const auto [read_error, n_read] = co_await asio::async_read(socket, reply_buffer, as_result);
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - began).count();
  if (!read_error && proof_equals(reply, make_proof(token, Side::kServer, nonce, target.port))) {
    result.outcome = ProbeOutcome::kReached;
    if (!local_error) result.source = local.address().to_string();
    result.micros = static_cast<std::uint32_t>(std::clamp<long long>(took, 1, UINT32_MAX));
    co_return result;
  }
  result.outcome = ProbeOutcome::kWrongPeer;
  if (guard.fired()) {
    result.detail = "connected, but no proof within " + limit_text(timeout);
  } else if (read_error) {
    result.detail = "connected, but no proof: " + read_error.message();
  } else {
    result.detail = "connected, but the proof is wrong";
  }
  co_return result;
}

Task<void> work(std::shared_ptr<Batch> batch) {
  while (batch->next < batch->targets.size()) {
    const std::size_t i = batch->next++;
    ProbeTarget target = batch->targets[i];
    std::string token = batch->token;
    batch->results[i] = co_await probe_one(std::move(target), std::move(token), batch->timeout);
  }
}

}  // namespace

Task<std::vector<ProbeResult>> probe_all(std::vector<ProbeTarget> targets, std::string token,
                                         std::chrono::milliseconds timeout, int parallel) {
  auto batch = std::make_shared<Batch>();
  batch->results.resize(targets.size());
  batch->targets = std::move(targets);
  batch->token = std::move(token);
  batch->timeout = timeout;
  TaskGroup workers(co_await asio::this_coro::executor);
  const std::size_t n_workers = std::min(static_cast<std::size_t>(std::max(parallel, 1)), batch->targets.size());
  for (std::size_t i = 0; i < n_workers; ++i) workers.spawn(work(batch));
  co_await workers.join();
  co_return std::move(batch->results);
}

}  // namespace drun::netdetect
