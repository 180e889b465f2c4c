#include <algorithm>

#include "base/error_id.h"
#include "transport/child_channel.h"
#include "transport/openssh_args.h"
#include "transport/transport.h"

namespace drun::transport {
namespace {

class OpensshTransport final : public Transport {
 public:
  OpensshTransport(asio::io_context& io, std::vector<std::string> launch_agent, std::string config_file)
      : io_(io), launch_agent_(std::move(launch_agent)), config_file_(std::move(config_file)) {}

  // Returns as soon as the child runs: ssh connects on its own, and the first frame has a deadline of its own. If ssh
  // fails, read_some returns 0, exit_status 255 and stderr_text ssh's messages.
  Task<Result<std::unique_ptr<Channel>>> open(const SshTarget& target, const std::string& command, Deadline deadline,
                                              const OnPhase* on_phase) override {
    notify_phase(on_phase, Phase::kSsh);
    const auto left = std::chrono::ceil<std::chrono::seconds>(deadline - Clock::now()).count();
    std::vector<std::string> argv = launch_agent_;
    if (argv.empty()) {
      argv = openssh_argv(target, config_file_, command, static_cast<int>(std::clamp<long>(left, 1, 3600)));
    } else {
      argv.push_back(typed_host(target));
      argv.push_back(command);
    }
    auto channel = spawn_child_channel(io_, argv);
    if (channel) co_return channel;
    Error error(Errc::kUnreachable, target.alias, channel.error().cause);
    error.id = error_id::kSsh;
    if (launch_agent_.empty()) error.hint = "apt-get install openssh-client";
    co_return fail(std::move(error));
  }

 private:
  asio::io_context& io_;
  std::vector<std::string> launch_agent_;
  std::string config_file_;
};

}  // namespace

std::unique_ptr<Transport> make_openssh_transport(asio::io_context& io, std::vector<std::string> launch_agent,
                                                  std::string config_file) {
  return std::make_unique<OpensshTransport>(io, std::move(launch_agent), std::move(config_file));
}

}  // namespace drun::transport
