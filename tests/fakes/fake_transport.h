// Hosts without a network: the test says in which phase of its way each one hangs or fails, and plays its agent. One
// thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/asio.h"
#include "tests/fakes/fake_channel.h"
#include "transport/phase.h"
#include "transport/transport.h"

namespace drun::testing {

class FakeTransport : public transport::Transport {
 public:
  struct Host {
    explicit Host(asio::io_context& io) : agent(io), second_agent(io), third_agent(io) {}
    FakeAgent agent;
    FakeAgent second_agent, third_agent;       // of later logins; the last one of all others
    bool uses_openssh = false;                 // which does not say how far it got
    std::vector<std::string> commands;         // one per login
    std::optional<transport::Phase> hangs_in;  // until the deadline
    std::optional<Error> fails;                // after the login
  };

  explicit FakeTransport(asio::io_context& io) : io_(io) {}

  // Created by its first mention.
  Host& host(const std::string& name) {
    auto& found = hosts_[name];
    if (found == nullptr) found = std::make_unique<Host>(io_);
    return *found;
  }

  Task<Result<std::unique_ptr<transport::Channel>>> open(const transport::SshTarget& target, const std::string& command,
                                                         Deadline deadline,
                                                         const transport::OnPhase* on_phase) override {
    using transport::Phase;
    Host& host = this->host(target.alias);
    for (const Phase phase : {Phase::kResolve, Phase::kConnect, Phase::kHandshake, Phase::kLogin}) {
      transport::notify_phase(on_phase, phase);
      if (host.hangs_in != phase) continue;
      co_await sleep_until(deadline);
      co_return fail(Errc::kUnreachable, target.alias, std::string(transport::phase_name(phase)) + ": timed out");
    }
    if (host.fails) co_return fail(*host.fails);
    transport::notify_phase(on_phase, host.uses_openssh ? Phase::kSsh : Phase::kAgent);
    host.commands.push_back(command);
    const auto n = host.commands.size();
    FakeAgent& agent = n == 1 ? host.agent : n == 2 ? host.second_agent : host.third_agent;
    co_return agent.channel();
  }

 private:
  asio::io_context& io_;
  std::map<std::string, std::unique_ptr<Host>> hosts_;
};

}  // namespace drun::testing
