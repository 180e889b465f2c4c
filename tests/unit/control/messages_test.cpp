#include "control/messages.h"

#include <gtest/gtest.h>

#include "base/clean_text.h"
#include "tests/hostile_text.h"

namespace drun::control {
namespace {

TEST(Messages, HelloSurvives) {
  Hello hello;
  hello.version = 7;
  hello.host_name = "node1";
  hello.boot_id = "b";
  hello.net_namespace = "net:[1]";
  hello.pid = -3;
  netdetect::Interface nic;
  nic.name = "eth0";
  nic.speed_mbps = 25000;
  nic.addresses.push_back(netdetect::parse_address("10.0.0.2"));
  hello.interfaces.push_back(nic);
  const auto back = decode<Hello>(encode(hello));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->version, 7);
  EXPECT_EQ(back->host_name, "node1");
  EXPECT_EQ(back->pid, -3);
  EXPECT_EQ(back->identity(), hello.identity());
  ASSERT_EQ(back->interfaces.size(), 1u);
  EXPECT_EQ(back->interfaces[0].addresses[0].text(), "10.0.0.2");
}

TEST(Messages, PrepareKeepsEveryByteOfTheEnvironment) {
  Prepare job;
  job.argv = {"./train", "", "a b", "\n\"'$"};
  job.working_directory = "/tmp/with space";
  job.environment["BIG"] = std::string(300000, 'x');
  job.environment["NEWLINE"] = "a\nb";
  const auto back = decode<Prepare>(encode(job));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->argv, job.argv);
  EXPECT_EQ(back->environment, job.environment);
  EXPECT_EQ(back->working_directory, job.working_directory);
}

TEST(Messages, DescribedKeepsEveryProcess) {
  Described described;
  described.rank = 7;
  described.pid = 4242;
  described.running = true;
  ProcessState process;
  process.pid = 4243;
  process.name = "train";
  process.state = 'S';
  process.cpu_ms = 1500;
  process.waits_in = "do_sys_poll";
  process.stack = "#0 poll\n";
  process.problem = "none";
  described.processes = {process, process};
  const auto back = decode<Described>(encode(described));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->rank, 7u);
  EXPECT_TRUE(back->running);
  ASSERT_EQ(back->processes.size(), 2u);
  EXPECT_EQ(back->processes[1].pid, 4243);
  EXPECT_EQ(back->processes[1].state, 'S');
  EXPECT_EQ(back->processes[1].cpu_ms, 1500u);
  EXPECT_EQ(back->processes[1].waits_in, "do_sys_poll");
  EXPECT_EQ(back->processes[1].stack, process.stack);
  EXPECT_EQ(back->processes[1].problem, "none");
}

// The text as drun has it after it came in such a message.
template <typename Message>
std::string arrived(std::string Message::*field) {
  Message message;
  message.*field = testing::kHostile;
  return decode<Message>(encode(message)).value().*field;
}

TEST(Messages, TextsOfAgentsAreCleanLines) {
  const std::string& line = testing::kHostileInOneLine;
  EXPECT_EQ(arrived(&Hello::host_name), line);
  EXPECT_EQ(arrived(&Hello::machine), line);
  EXPECT_EQ(arrived(&Hello::path), line);
  EXPECT_EQ(arrived(&Port::error), line);
  EXPECT_EQ(arrived(&Started::what), line);
  EXPECT_EQ(arrived(&Exited::out_of_memory), line);
  EXPECT_EQ(arrived(&Finished::leftover_name), line);
  EXPECT_EQ(arrived(&Cleaned::error), line);
  Prepared prepared;
  prepared.problems.push_back({ProblemKind::kOther, testing::kHostile, testing::kHostile});
  prepared.problems = decode<Prepared>(encode(prepared)).value().problems;
  EXPECT_EQ(prepared.problems[0].cause, line);
  EXPECT_EQ(prepared.problems[0].hint, line);
  Described described;
  ProcessState process;
  process.name = process.waits_in = process.problem = process.stack = testing::kHostile;
  described.processes = {process};
  process = decode<Described>(encode(described)).value().processes.at(0);
  EXPECT_EQ(process.name, line);
  EXPECT_EQ(process.waits_in, line);
  EXPECT_EQ(process.problem, line);
  EXPECT_EQ(process.stack, clean_text(testing::kHostile));
  Cleaned cleaned;
  LeftProcess left;
  left.user = left.command = left.job_id = testing::kHostile;
  cleaned.processes = {left};
  left = decode<Cleaned>(encode(cleaned)).value().processes.at(0);
  EXPECT_EQ(left.user + left.command + left.job_id, line + line + line);
  Facts facts;
  facts.facts.versions["kernel"] = testing::kHostile;
  facts.facts.nccl_conf["f"] = {testing::kHostile};
  facts = decode<Facts>(encode(facts)).value();
  EXPECT_EQ(facts.facts.versions["kernel"], line);
  EXPECT_EQ(facts.facts.nccl_conf["f"].at(0), line);
  ProbeResults results;
  results.results.resize(1);
  results.results[0].detail = testing::kHostile;
  EXPECT_EQ(decode<ProbeResults>(encode(results)).value().results.at(0).detail, line);
}

TEST(Messages, FactsKeepEverything) {
  HostFacts f;
  f.versions["kernel"] = "6.1";
  f.unknown["python"] = "late";
  f.command = "/bin/train";
  f.command_problem = "none";
  f.monotonic_ns = 5;
  f.realtime_ns = 1700000000000000000;
  f.n_cpus = 64;
  f.memory_total_mib = 1 << 20;
  f.open_files = HostFacts::kUnlimited;
  f.disks.resize(1);
  f.disks[0].path = "/tmp";
  f.disks[0].free_mib = 3;
  f.has_nvidia_smi = true;
  f.nvidia_smi_ms = 77;
  f.gpus.resize(2);
  f.gpus[1].index = 1;
  f.gpus[1].throttle_reasons = 0x48;
  f.gpus[1].processes.resize(1);
  f.gpus[1].processes[0].name = "python3";
  f.xids.resize(1);
  f.xids[0].number = 79;
  f.rdma.resize(1);
  f.rdma[0].gid_rocev2 = 3;
  f.nics.resize(1);
  f.nics[0].networks = {"10.0.0.0/24"};
  f.bonds.resize(1);
  f.bonds[0].slaves.resize(2);
  f.bonds[0].slaves[1].name = "eth1";
  f.nccl_conf["/etc/nccl.conf"] = {"NCCL_DEBUG=INFO", "X=1"};
  f.variables["NCCL_DEBUG"] = "WARN";
  f.own_addresses = {"127.0.1.1"};
  Facts facts;
  facts.facts = f;
  const std::string bytes = encode(facts);
  const auto back = decode<Facts>(bytes);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(encode(*back), bytes);
  const auto& b = back->facts;
  EXPECT_EQ(b.versions, f.versions);
  EXPECT_EQ(b.unknown, f.unknown);
  EXPECT_EQ(b.realtime_ns, f.realtime_ns);
  EXPECT_EQ(b.memlock_bytes, -1);
  EXPECT_EQ(b.open_files, HostFacts::kUnlimited);
  ASSERT_EQ(b.gpus.size(), 2u);
  EXPECT_EQ(b.gpus[1].throttle_reasons, 0x48u);
  EXPECT_EQ(b.gpus[1].processes.at(0).name, "python3");
  EXPECT_EQ(b.bonds.at(0).slaves.at(1).name, "eth1");
  EXPECT_EQ(b.nccl_conf, f.nccl_conf);
  EXPECT_EQ(b.nics.at(0).networks, f.nics[0].networks);
  EXPECT_FALSE(decode<Facts>(std::string_view(bytes).substr(0, bytes.size() - 1)).has_value());
  EXPECT_FALSE(decode<Facts>(bytes + "x").has_value());
}

TEST(Messages, DescribedKeepsTheCpuTimeOfALongJob) {
  Described described;
  described.processes.resize(1);
  described.processes[0].cpu_ms = 5'000'000'000'000;  // 64 cores for 2.5 years
  const auto back = decode<Described>(encode(described));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->processes[0].cpu_ms, 5'000'000'000'000u);
}

TEST(Messages, SpawnKeepsWorkers) {
  Spawn order;
  WorkerSpec worker;
  worker.rank = 3;
  worker.local_rank = 1;
  worker.wants_stdin = true;
  worker.environment["RANK"] = "3";
  order.workers = {worker, worker};
  order.pty = true;
  order.handout = std::string("\0key", 4);
  order.output_credit = 99;
  const auto back = decode<Spawn>(encode(order));
  ASSERT_TRUE(back.has_value());
  ASSERT_EQ(back->workers.size(), 2u);
  EXPECT_EQ(back->workers[1].environment.at("RANK"), "3");
  EXPECT_TRUE(back->pty);
  EXPECT_EQ(back->handout, order.handout);
}

TEST(Messages, CleanedKeepsProcessesAndDirectories) {
  Cleaned found;
  LeftProcess process;
  process.state = LeftState::kSurvived;
  process.job_id = "0123456789abcdef";
  process.rank = 7;
  process.pid = 4321;
  process.uid = 1000;
  process.user = "ann";
  process.age_s = 5'000'000'000;
  process.command = "a b";
  found.processes = {process, LeftProcess()};
  LeftDirectory directory;
  directory.state = LeftState::kEnded;
  directory.path = "/sys/fs/cgroup/drun-1";
  found.directories = {directory};
  found.error = "stuck";
  const auto back = decode<Cleaned>(encode(found));
  ASSERT_TRUE(back.has_value());
  ASSERT_EQ(back->processes.size(), 2u);
  EXPECT_EQ(back->processes[0].state, LeftState::kSurvived);
  EXPECT_EQ(back->processes[0].job_id, process.job_id);
  EXPECT_EQ(back->processes[0].rank, 7);
  EXPECT_EQ(back->processes[0].pid, 4321);
  EXPECT_EQ(back->processes[0].uid, 1000u);
  EXPECT_EQ(back->processes[0].user, "ann");
  EXPECT_EQ(back->processes[0].age_s, 5'000'000'000u);
  EXPECT_EQ(back->processes[0].command, process.command);
  EXPECT_EQ(back->processes[1].rank, -1);
  ASSERT_EQ(back->directories.size(), 1u);
  EXPECT_EQ(back->directories[0].path, directory.path);
  EXPECT_EQ(back->directories[0].state, LeftState::kEnded);
  EXPECT_EQ(back->error, "stuck");
}

TEST(Messages, OutputAndInputKeepBytesAndTime) {
  Output output;
  output.rank = 7;
  output.stream = Stream::kStderr;
  output.time_ns = 0x0102030405060708u;
  output.bytes = std::string("\0\xff\n", 3);
  const auto back = decode<Output>(encode(output));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->rank, 7u);
  EXPECT_EQ(back->stream, Stream::kStderr);
  EXPECT_EQ(back->time_ns, output.time_ns);
  EXPECT_EQ(back->bytes, output.bytes);
  Input input;
  input.rank = 9;
  input.bytes = output.bytes;
  const auto in = decode<Input>(encode(input));
  ASSERT_TRUE(in.has_value());
  EXPECT_EQ(in->rank, 9u);
  EXPECT_EQ(in->bytes, output.bytes);
}

// Expects that every strict prefix of the message, and the message with one byte more, is refused without a crash.
template <typename Message>
void expect_exact(const std::string& body) {
  for (std::size_t n = 0; n < body.size(); ++n) {
    EXPECT_FALSE(decode<Message>(std::string_view(body).substr(0, n)).has_value()) << "prefix of " << n;
  }
  EXPECT_FALSE(decode<Message>(body + "x").has_value());
}

TEST(Messages, RefuseWhatIsTruncatedOrTooLong) {
  Hello hello;
  hello.interfaces.resize(2);
  expect_exact<Hello>(encode(hello));
  Prepare job;
  job.argv = {"a", "b"};
  job.environment["A"] = "B";
  job.gpus = {"0", ""};
  expect_exact<Prepare>(encode(job));
  Spawn order;
  order.workers.resize(2);
  order.workers[0].environment["A"] = "B";
  expect_exact<Spawn>(encode(order));
  Prepared prepared;
  prepared.problems.resize(1);
  prepared.bindings.resize(2);
  expect_exact<Prepared>(encode(prepared));
  Cleaned cleaned;
  cleaned.processes.resize(2);
  cleaned.processes[0].command = "sleep 1";
  cleaned.directories.resize(1);
  expect_exact<Cleaned>(encode(cleaned));
  expect_exact<Clean>(encode(Clean{}));
  Described described;
  described.processes.resize(2);
  expect_exact<Described>(encode(described));
  // The last field of these messages takes the rest of the body, so an additional byte is valid.
  EXPECT_FALSE(decode<Output>(encode(Output{}).substr(0, 12)).has_value());
  EXPECT_FALSE(decode<Input>(encode(Input{}).substr(0, 3)).has_value());
  expect_exact<Exited>(encode(Exited{}));
  expect_exact<Configure>(encode(Configure{}));
}

TEST(Messages, ACountThatCanNotFitIsRefusedWithoutAllocating) {
  ByteWriter out;
  out.u32(0xffffffffu);  // workers
  EXPECT_FALSE(decode<Spawn>(out.bytes()).has_value());
}

}  // namespace
}  // namespace drun::control
