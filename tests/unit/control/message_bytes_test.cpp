// The bytes of docs/protocol.md: agents and drun of one protocol version must agree on them.
#include <gtest/gtest.h>

#include "base/text.h"
#include "control/messages.h"

namespace drun::control {
namespace {

template <typename Message>
void expect_bytes(const Message& message, const std::string& expected) {
  const std::string bytes = encode(message);
  EXPECT_EQ(hex(bytes), expected);
  const auto back = decode<Message>(bytes);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(hex(encode(*back)), expected);
}

TEST(MessageBytes, OfTheStart) {
  Hello hello;
  hello.version = 2;
  hello.host_name = "h";
  hello.machine = "m";
  hello.boot_id = "b";
  hello.net_namespace = "n";
  hello.pid_namespace = "p";
  hello.mnt_namespace = "t";
  hello.uid = 1000;
  hello.pid = -1;
  hello.path = "/a";
  hello.n_cpus = 7;
  hello.n_gpus = 8;
  hello.interfaces.resize(1);
  hello.interfaces[0].name = "e";
  expect_bytes(hello,
               "00020000000168000000016d0000000162000000016e00000001700000000174000003e8ffffffff000000022f610000000700"
               "000008000000010000000165000000000000000000000000000000000000000000ffffffffffffffff00000000");
  Configure configure;
  configure.job_id = "id";
  configure.heartbeat_ms = 1;
  configure.heartbeat_timeout_ms = 2;
  configure.grace_ms = 3;
  expect_bytes(configure, "000000026964000000010000000200000003");
  ProbeListen listen;
  listen.token = "tt";
  expect_bytes(listen, "000000027474");
  Port port;
  port.address = "a";
  port.port = 258;
  port.error = "e";
  expect_bytes(port, "000000016101020000000165");
  ProbeRun run;
  run.targets.resize(1);
  run.targets[0].id = 5;
  run.targets[0].address = "x";
  run.targets[0].port = 9;
  run.token = "t";
  run.timeout_ms = 7;
  run.parallel = 8;
  expect_bytes(run, "00000001000000050000000178000900000001740000000700000008");
  ProbeResults results;
  results.results.resize(1);
  results.results[0].id = 5;
  results.results[0].source = "s";
  results.results[0].micros = 6;
  results.results[0].detail = "d";
  expect_bytes(results, "0000000100000005050000000173000000060000000164");
  Prepare prepare;
  prepare.argv = {"a", ""};
  prepare.working_directory = "/";
  prepare.environment = {{"K", "V"}};
  prepare.master_address = "m";
  prepare.refuses_mpi = true;
  prepare.compat_folder = "c";
  prepare.bind_to = BindTo::kNuma;
  prepare.shares_cores = true;
  prepare.gpus = {"2", ""};
  prepare.time_ms = 8;
  expect_bytes(prepare,
               "00000002000000016100000000000000012f00000001000000014b0000000156000000016d01"
               "000000016302010000000200000001320000000000000008");
  Prepared prepared;
  prepared.problems.resize(1);
  prepared.problems[0].kind = ProblemKind::kNotExecutable;
  prepared.problems[0].cause = "c";
  prepared.problems[0].hint = "h";
  prepared.master_port = 4660;
  prepared.bindings.resize(1);
  prepared.bindings[0].cpus = "1";
  prepared.bindings[0].place = "p";
  prepared.bindings[0].threads = 3;
  expect_bytes(prepared,
               "00000001020000000163000000016812340000000100000001310000000170"
               "00000003");
}

TEST(MessageBytes, OfWorkers) {
  Spawn spawn;
  spawn.workers.resize(1);
  spawn.workers[0].rank = 3;
  spawn.workers[0].local_rank = 1;
  spawn.workers[0].wants_stdin = true;
  spawn.workers[0].environment = {{"A", "B"}};
  spawn.pty = true;
  spawn.handout = "h";
  spawn.output_credit = 16;
  spawn.umask = 027;
  spawn.window.columns = 258;
  spawn.window.rows = 3;
  spawn.start_ms = 9;
  expect_bytes(spawn,
               "000000010000000300000001010000000100000001410000000142010000000168000000100000001701020003"
               "00000009");
  Started started;
  started.rank = 3;
  started.pid = 4;
  started.error = 2;
  started.what = "w";
  expect_bytes(started, "0000000300000004000000020000000177");
  Output output;
  output.rank = 3;
  output.stream = Stream::kStderr;
  output.time_ns = 0x0102030405060708u;
  output.bytes = "xy";
  expect_bytes(output, "000000030201020304050607087879");
  Input input;
  input.rank = 3;
  input.bytes = "xy";
  expect_bytes(input, "000000037879");
  Credit credit;
  credit.rank = 3;
  credit.stream = Stream::kStdin;
  credit.n_bytes = 9;
  expect_bytes(credit, "000000030000000009");
  Exited exited;
  exited.rank = 3;
  exited.pid = 4;
  exited.wait_status = 256;
  exited.ended_by_drun = true;
  exited.time_ns = 5;
  exited.out_of_memory = "o";
  exited.error_file = "e";
  expect_bytes(exited, "000000030000000400000100010000000000000005000000016f0000000165");
  Stop stop;
  stop.delay_ms = 1;
  stop.grace_ms = 2;
  stop.delayed = {7, 8};
  expect_bytes(stop, "0000000100000002000000020000000700000008");
  Finished finished;
  finished.leftovers = 3;
  finished.leftover_name = "n";
  finished.stuck = {"p"};
  expect_bytes(finished, "00000003000000016e000000010000000170");
  Signal signal;
  signal.number = 10;
  expect_bytes(signal, "0000000a");
  WindowSize window;
  window.columns = 258;
  window.rows = 3;
  expect_bytes(window, "01020003");
}

TEST(MessageBytes, OfTheRest) {
  Ping ping;
  ping.sent_ns = 1;
  expect_bytes(ping, "0000000000000001");
  Pong pong;
  pong.sent_ns = 1;
  pong.host_ns = 2;
  expect_bytes(pong, "00000000000000010000000000000002");
  RelayListen listen_for_relay;
  listen_for_relay.for_horovod = true;
  expect_bytes(listen_for_relay, "01");
  Relay relay;
  relay.connection = 1;
  relay.bytes = "r";
  expect_bytes(relay, "0000000172");
  Clean order;
  order.job_id = "j";
  order.end = true;
  order.grace_ms = 2;
  expect_bytes(order, "000000016a010000000002");
  Cleaned cleaned;
  cleaned.processes.resize(1);
  cleaned.processes[0].state = LeftState::kEnded;
  cleaned.processes[0].job_id = "j";
  cleaned.processes[0].rank = -1;
  cleaned.processes[0].pid = 5;
  cleaned.processes[0].uid = 6;
  cleaned.processes[0].user = "u";
  cleaned.processes[0].age_s = 7;
  cleaned.processes[0].command = "c";
  cleaned.directories.resize(1);
  cleaned.directories[0].state = LeftState::kSurvived;
  cleaned.directories[0].job_id = "j";
  cleaned.directories[0].path = "/p";
  cleaned.error = "e";
  expect_bytes(cleaned,
               "0000000102000000016affffffff00000005000000060000000175000000000000000700000001630000000103000000016a000"
               "000022f700000000165");
  Describe describe;
  describe.stacks_ms = 4;
  expect_bytes(describe, "00000004");
  Described described;
  described.rank = 1;
  described.pid = 2;
  described.running = true;
  described.wait_status = 3;
  described.processes.resize(1);
  described.processes[0].pid = 4;
  described.processes[0].name = "n";
  described.processes[0].state = 'S';
  described.processes[0].cpu_ms = 5;
  described.processes[0].waits_in = "w";
  described.processes[0].stack = "s";
  described.processes[0].problem = "p";
  expect_bytes(described,
               "000000010000000201000000030000000100000004000000016e530000000000000005000000017700000001730000000170");
  Text text;
  text.text = "t";
  expect_bytes(text, "0000000174");
}

TEST(MessageBytes, OfFlightRecorders) {
  Record record;
  record.n_entries = 1024;
  record.timeline_ms = 5;
  expect_bytes(record, "0000040000000005");
  RecordedCall call;
  call.comm = 1;
  call.group = 12;
  call.seq = 2;
  call.kind = 3;
  call.dtype = 4;
  call.op = 5;
  call.status = -6;
  call.root = 7;
  call.count = 8;
  call.queued_us = 9;
  call.started_ns = 10;
  call.ended_ns = 11;
  call.name = "n";
  const std::string call_bytes =
      "000000010000000c0000000000000002030405fffffffa00000007000000000000000800000009000000000000000a000000000000000b00"
      "000001"
      "6e";
  Activity activity;
  activity.ranks.resize(1);
  activity.ranks[0].rank = 1;
  activity.ranks[0].n_begun = 2;
  activity.ranks[0].world_seq = 3;
  activity.ranks[0].time_ns = 4;
  activity.ranks[0].last = {call};
  expect_bytes(activity,
               "0000000100000001000000000000000200000000000000030000000000000004"
               "0000000000000001" +
                   call_bytes);
  Timeline timeline;
  timeline.rank = 1;
  timeline.n_lost = 2;
  timeline.calls = {call};
  expect_bytes(timeline, "00000001000000000000000200000001" + call_bytes);
}

TEST(MessageBytes, OfAskFacts) {
  AskFacts ask;
  ask.argv = {"t"};
  ask.working_directory = "/";
  ask.environment["A"] = "b";
  ask.variables = {"N*"};
  ask.tool_ms = 258;
  expect_bytes(ask,
               "000000010000000174"
               "000000012f"
               "0000000100000001410000000162"
               "00000001000000024e2a"
               "00000102");
}

TEST(MessageBytes, OfLinkMeasurements) {
  LinkListen listen;
  listen.token = "tt";
  expect_bytes(listen, "000000027474");
  LinkRun run;
  run.targets.resize(1);
  run.targets[0].id = 5;
  run.targets[0].address = "x";
  run.targets[0].port = 9;
  run.targets[0].source = "s";
  run.targets[0].n_round_trips = 1;
  run.targets[0].round_trips_ms = 2;
  run.targets[0].path_mtu = true;
  run.targets[0].n_streams = 3;
  run.targets[0].time_ms = 4;
  run.targets[0].begin_in_ms = 6;
  run.targets[0].receives = false;
  run.targets[0].max_rate = 7;
  run.targets[0].segment_bytes = 8;
  run.token = "t";
  expect_bytes(run,
               "000000010000000500000001780009000000017300000001000000020100000003000000040000000601000000000000000007"
               "00080000000174");
  LinkResults results;
  results.results.resize(1);
  auto& result = results.results[0];
  result.id = 5;
  result.error = "e";
  result.n_round_trips = 1;
  result.rtt_median_us = 0.002;
  result.rtt_p99_us = 0.003;
  result.rtt_min_us = 0.004;
  result.mtu_forward = 5;
  result.mtu_backward = 6;
  result.forward.n_streams = 7;
  result.forward.bits_per_second = 8;
  result.forward.seconds = 9e-6;
  result.forward.n_segments = 10;
  result.forward.n_retransmits = 11;
  expect_bytes(results,
               "000000010000000500000001650000000100000000000000020000000000000003000000000000000400000005000000060000"
               "000700000000000000080000000000000009000000000000000a000000000000000b"
               "000000000000000000000000000000000000000000000000000000000000000000000000");
}

}  // namespace
}  // namespace drun::control
