// The body of every message between drun and its agents.
#include "control/messages.h"

#include "tests/fuzz/fuzz.h"

namespace drun::fuzz {
namespace {

using namespace control;

// Not every form is unique (any byte but 0 is true, a map may come in any order): encoding once makes it so.
template <typename Message>
void decode_and_encode(std::string_view body) {
  const std::size_t before = allocated_bytes();
  const auto message = decode<Message>(body);
  expect_bounded_memory(before, body.size());
  if (!message) return expect(message.error().code == Errc::kProtocol, "a malformed message is kProtocol");
  const std::string once = encode(*message);
  expect(once.size() <= body.size(), "a message has no form that is longer");
  const auto again = decode<Message>(once);
  expect(again && encode(*again) == once, "an encoded message is decoded as it was");
}

template <typename... Message>
struct Messages {
  static void decode_one(std::size_t number, std::string_view body) {
    std::size_t i = 0;
    ((i++ == number ? decode_and_encode<Message>(body) : void()), ...);
  }
  static std::size_t size() { return sizeof...(Message); }
  template <typename One>
  static std::string seed(const One& message) {
    std::size_t i = 0, number = 0;
    ((std::is_same_v<One, Message> ? void(number = i++) : void(i++)), ...);
    return Script().byte(number).raw(encode(message));
  }
  static void add_empty(std::vector<std::string>& out) { (out.push_back(seed(Message())), ...); }
};

using All = Messages<Hello, Configure, ProbeListen, Port, ProbeRun, ProbeResults, LinkListen, LinkRun, LinkResults,
                     Prepare, Prepared, Spawn, Started, Output, control::Input, Credit, Exited, Stop, Ping, Pong,
                     Finished, Signal, WindowSize, RelayListen, Relay, Clean, Cleaned, Describe, Described, Record,
                     Activity, Timeline, AskFacts, Facts, Text>;

void run(std::string_view bytes) {
  fuzz::Input in(bytes);
  const std::size_t number = in.below(All::size());
  All::decode_one(number, in.rest());
}

std::vector<std::string> seeds() {
  std::vector<std::string> out;
  All::add_empty(out);
  Hello hello;
  hello.host_name = "node1";
  hello.interfaces.resize(1);
  hello.interfaces[0].name = "eth0";
  hello.interfaces[0].addresses.push_back(netdetect::parse_address("10.0.0.2"));
  hello.interfaces[0].addresses.push_back(netdetect::parse_address("fd00::2"));
  out.push_back(All::seed(hello));
  ProbeRun probe;
  probe.targets.resize(2);
  probe.targets[0].address = "10.0.0.2";
  out.push_back(All::seed(probe));
  ProbeResults probed;
  probed.results.resize(2);
  probed.results[1].detail = "no route to host";
  out.push_back(All::seed(probed));
  LinkRun links;
  links.targets.resize(1);
  links.targets[0].address = "10.0.0.2";
  out.push_back(All::seed(links));
  LinkResults measured;
  measured.results.resize(1);
  measured.results[0].rtt_median_us = 12.5;
  measured.results[0].forward.bits_per_second = 1e10;
  out.push_back(All::seed(measured));
  Prepare prepare;
  prepare.argv = {"./train", "--lr", "0.1"};
  prepare.environment = {{"A", "1"}, {"B", "2"}};
  prepare.gpus = {"0", "1"};
  out.push_back(All::seed(prepare));
  Prepared prepared;
  prepared.problems.push_back({ProblemKind::kNotFound, "no such file", "ls"});
  prepared.bindings.push_back({"0-3", "cores 0-3", 4});
  out.push_back(All::seed(prepared));
  Spawn spawn;
  spawn.workers.resize(2);
  spawn.workers[1].environment = {{"RANK", "1"}};
  out.push_back(All::seed(spawn));
  Output output;
  output.bytes = "epoch 1\n";
  out.push_back(All::seed(output));
  Exited exited;
  exited.wait_status = 9;
  exited.error_file = R"({"message": "nan"})";
  out.push_back(All::seed(exited));
  Stop stop;
  stop.delayed = {0, 3};
  out.push_back(All::seed(stop));
  Cleaned cleaned;
  cleaned.processes.resize(1);
  cleaned.processes[0].command = "python3 train.py";
  cleaned.directories.push_back({LeftState::kEnded, "job", "/tmp/drun-job"});
  out.push_back(All::seed(cleaned));
  Described described;
  described.processes.resize(1);
  described.processes[0].name = "python3";
  out.push_back(All::seed(described));
  Activity activity;
  activity.ranks.resize(1);
  activity.ranks[0].open.resize(1);
  out.push_back(All::seed(activity));
  Timeline timeline;
  timeline.calls.resize(2);
  timeline.calls[0].name = "grad.17";
  out.push_back(All::seed(timeline));
  AskFacts ask;
  ask.argv = {"python3", "train.py"};
  ask.variables = {"NCCL_*"};
  out.push_back(All::seed(ask));
  Facts facts;
  facts.facts.versions = {{"kernel", "6.1"}};
  facts.facts.gpus.resize(1);
  facts.facts.gpus[0].processes.resize(1);
  facts.facts.nccl_conf = {{"/etc/nccl.conf", {"NCCL_DEBUG=INFO"}}};
  facts.facts.disks.resize(1);
  facts.facts.xids.resize(1);
  facts.facts.rdma.resize(1);
  facts.facts.nics.resize(1);
  facts.facts.bonds.resize(1);
  facts.facts.bonds[0].slaves.resize(1);
  out.push_back(All::seed(facts));
  return out;
}

const Target kTarget("control_messages", run, seeds);

}  // namespace
}  // namespace drun::fuzz
