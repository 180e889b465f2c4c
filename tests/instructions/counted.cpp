// Work whose instructions are counted: drun_counted start|frames|output. test_instructions.py runs it under callgrind,
// which collects what happens inside drun_count(), on this thread. No sockets, no real time: each run does the same.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "control/frames.h"
#include "control/messages.h"
#include "launcher/connect/connect.h"
#include "launcher/output/output_display.h"
#include "tests/fakes/fake_transport.h"
#include "tests/fakes/recording_reporter.h"
#include "tests/fakes/virtual_time.h"

extern "C" __attribute__((noinline)) void drun_count(const std::function<void()>& work) {
  work();
  asm volatile("");  // no tail call, which callgrind would not see as a call
}

namespace {

using namespace drun;  // NOLINT(google-build-using-namespace): a program of one file

void require(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "drun_counted: %s\n", what);
  std::exit(1);
}

Task<void> connect(asio::io_context& io, asio::thread_pool& helper, launcher::AgentChannels& group,
                   std::vector<Host> hosts, launcher::ConnectOptions options, launcher::Reporter& reporter,
                   std::optional<launcher::Connected>& connected) {
  connected = co_await launcher::connect_hosts(io, helper, group, std::move(hosts), std::move(options), reporter);
}

// Connects to 64 hosts that have an agent: the remote commands, the hellos, the comparison of machines.
void start() {
  constexpr int kHosts = 64;
  asio::io_context io{1};
  asio::thread_pool helper{1};
  testing::VirtualTime time(io);
  testing::FakeTransport transport(io);
  testing::RecordingReporter reporter;
  launcher::AgentChannels group;
  launcher::ConnectOptions options;
  options.transport = &transport;
  options.ssh.config_file = "none";
  std::vector<Host> hosts;
  for (int i = 0; i < kHosts; ++i) {
    Host host;
    host.name = "node" + std::to_string(i);
    hosts.push_back(host);
    control::Hello hello;
    hello.version = control::kVersion;
    hello.pid = 100;
    hello.boot_id = host.name;
    transport.host(host.name).agent.write(std::string(control::kMagic) +
                                          control::encode_frame(control::Type::kHello, control::encode(hello)));
  }
  std::optional<launcher::Connected> connected;
  drun_count([&] {
    asio::co_spawn(io, connect(io, helper, group, std::move(hosts), options, reporter, connected),
                   [](std::exception_ptr) {});
    time.run_until([&] { return connected.has_value(); }, std::chrono::seconds(5));
  });
  require(connected && connected->agents.size() == kHosts, "not all hosts were reached");
  for (const auto& agent : connected->agents) agent->close();
  time.run_for(std::chrono::milliseconds(10));
  helper.join();
}

// Messages of a job of 64 ranks, in pieces as a connection gives them.
void frames() {
  std::string bytes;
  int n_ranks = 0;
  drun_count([&] {
    for (std::uint32_t i = 0; i < 6400; ++i) {
      control::Started started;
      started.rank = i % 64;
      started.pid = static_cast<int>(i);
      bytes += control::encode_frame(control::Type::kStarted, control::encode(started));
      control::Output output;
      output.rank = i % 64;
      output.bytes.assign(200, 'x');
      bytes += control::encode_frame(control::Type::kOutput, control::encode(output));
    }
    control::FrameParser parser;
    for (std::size_t at = 0; at < bytes.size(); at += 16384) {
      parser.push(std::string_view(bytes).substr(at, 16384));
      for (auto frame = parser.next(); frame && *frame; frame = parser.next()) {
        if ((*frame)->type == control::Type::kStarted)
          n_ranks += control::decode<control::Started>((*frame)->body) ? 1 : 0;
        if ((*frame)->type == control::Type::kOutput)
          n_ranks += control::decode<control::Output>((*frame)->body) ? 1 : 0;
      }
    }
  });
  require(n_ranks == 2 * 6400, "not all messages arrived");
}

// 100,000 lines of 64 ranks, with tags.
void output() {
  std::vector<launcher::RankLabel> labels;
  for (int i = 0; i < 64; ++i) labels.push_back({"node" + std::to_string(i), i});
  launcher::OutputDisplay display(launcher::OutputTags(launcher::TagStyle::kRank, false, labels), labels.size(), {});
  std::string lines;
  for (int i = 0; i < 100; ++i)
    lines += "step " + std::to_string(1000 + i) + ": loss 0.12345, 1234.5 samples in a second\n";
  std::size_t n_bytes = 0;
  drun_count([&] {
    for (int i = 0; i < 1000; ++i) {
      display.put(i % 64, control::Stream::kStdout, 0, lines);
      n_bytes += display.size();
      display.clear();
    }
  });
  require(n_bytes > 1000 * lines.size(), "bytes are missing");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc == 2 ? argv[1] : "";
  if (what == "start") {
    start();
  } else if (what == "frames") {
    frames();
  } else if (what == "output") {
    output();
  } else {
    std::fputs("usage: drun_counted start|frames|output\n", stderr);
    return 2;
  }
  return 0;
}
