#include "launcher/run/clean.h"

#include "transport/helper_pool.h"

namespace drun::launcher {

namespace {

constexpr auto kAnswerTime = std::chrono::seconds(30);  // in addition to the grace time

struct Answer {
  Result<control::Cleaned> found = fail(Errc::kInternal, "not asked");
};

Task<void> ask(AgentChannel& agent, const control::Clean& order, Answer& answer) {
  const Deadline deadline = Clock::now() + std::chrono::milliseconds(order.grace_ms) + kAnswerTime;
  std::string body = control::encode(order);
  std::string what = "clean";
  auto frame = co_await agent.request(control::Type::kClean, std::move(body), control::Type::kCleaned, std::move(what),
                                      deadline);
  if (!frame) {
    answer.found = fail(std::move(frame.error()));
    co_return;
  }
  answer.found = control::decode<control::Cleaned>(frame->body);
  if (answer.found && !answer.found->error.empty()) {
    answer.found = fail(Errc::kUnreachable, agent.name(), "clean: " + answer.found->error);
  } else if (!answer.found) {
    answer.found = fail(std::move(answer.found.error()).with_subject(agent.name()));
  }
}

Task<void> run(asio::io_context& io, asio::thread_pool& helper, CleanOptions options, Reporter& reporter,
               CleanResult& out) {
  AgentChannels channels;
  auto connected = co_await connect_hosts(io, helper, channels, options.hosts, options.connect, reporter);
  out.errors = std::move(connected.errors);
  std::vector<Answer> answers(connected.agents.size());
  TaskGroup asking(io.get_executor());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    asking.spawn(ask(*connected.agents[i], options.order, answers[i]));
  }
  co_await asking.join();
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].found) {
      CleanedHost host;
      host.name = connected.agents[i]->name();
      host.found = std::move(*answers[i].found);
      out.hosts.push_back(std::move(host));
    } else {
      out.errors.push_back(std::move(answers[i].found.error()));
    }
  }
  co_await end_channels(io, connected.agents);
}

}  // namespace

CleanResult clean_hosts(CleanOptions options, Reporter& reporter) {
  asio::io_context io(1);
  transport::HelperPool helper;
  options.connect.keep_reachable = true;
  CleanResult out;
  run_on_loop(io, run(io, helper.get(), std::move(options), reporter, out));
  return out;
}

}  // namespace drun::launcher
