#include "cli/options.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/temp_folder.h"

namespace drun::cli {
namespace {

using launcher::StdinMode;
using launcher::TagStyle;

const launcher::Environment kEnv = {{"PATH", "/bin"}, {"LD_LIBRARY_PATH", "/opt/lib"}};

Result<Options> parse(std::vector<std::string> args) { return parse_options(std::move(args), kEnv); }

Error error_of(std::vector<std::string> args) {
  auto options = parse(std::move(args));
  EXPECT_FALSE(options.has_value());
  if (options) return Error();
  EXPECT_EQ(options.error().code, Errc::kUsage);
  return options.error();
}

TEST(Options, TakesTheMainCommandAsTyped) {
  const auto o =
      parse({"-np", "2", "-H", "localhost:1,host1:1", "-p", "12345", "./train", "--epochs", "3", "-np", "9"});
  ASSERT_TRUE(o.has_value()) << o.error().message();
  EXPECT_EQ(o->job.np, 2);
  ASSERT_EQ(o->job.hosts.size(), 2u);
  EXPECT_EQ(o->job.hosts[1].name, "host1");
  EXPECT_EQ(o->job.connect.ssh.port, 12345);
  EXPECT_EQ(o->job.command, (std::vector<std::string>{"./train", "--epochs", "3", "-np", "9"}));
  EXPECT_EQ(o->job.output.tag, TagStyle::kRank);
}

TEST(Options, TakesTheRdmaLineAsTyped) {
  const auto o = parse({"-np", "16", "-H", "gpu1:8,gpu2:8", "-x", "NCCL_DEBUG=INFO", "-x", "NCCL_IB_DISABLE=0", "-x",
                        "NCCL_SOCKET_IFNAME=bond0", "-x", "NCCL_IB_GID_INDEX=3", "-x", "LD_LIBRARY_PATH", "-x", "PATH",
                        "python3", "train.py"});
  ASSERT_TRUE(o.has_value()) << o.error().message();
  EXPECT_EQ(o->job.env.exports.size(), 6u);
  EXPECT_EQ(o->job.env.exports[2], "NCCL_SOCKET_IFNAME=bond0");
  EXPECT_EQ(o->job.command, (std::vector<std::string>{"python3", "train.py"}));
}

TEST(Options, NoHostsMeanLocalhostWithAllSlots) {
  const auto o = parse({"-np", "3", "true"});
  ASSERT_TRUE(o.has_value());
  ASSERT_EQ(o->job.hosts.size(), 1u);
  EXPECT_EQ(o->job.hosts[0].name, "localhost");
  EXPECT_EQ(o->job.hosts[0].slots, 3);
}

const launcher::Environment kSlurm = {
    {"PATH", "/bin"}, {"SLURM_JOB_ID", "4"}, {"SLURM_JOB_NODELIST", "n[1-2]"}, {"SLURM_TASKS_PER_NODE", "3,1"}};

TEST(Options, NoHostsMeanThoseOfTheBatchJob) {
  const auto o = parse_options({"hostname"}, kSlurm);
  ASSERT_TRUE(o.has_value()) << o.error().message();
  ASSERT_EQ(o->job.hosts.size(), 2u);
  EXPECT_EQ(o->job.hosts[0].name, "n1");
  EXPECT_EQ(o->job.hosts[0].slots, 3);
  EXPECT_EQ(o->job.hosts[1].job, "Slurm job 4");
  const auto few = parse_options({"-np", "2", "hostname"}, kSlurm);
  ASSERT_TRUE(few.has_value());
  EXPECT_EQ(few->job.hosts.size(), 2u);
  const auto per_node = parse_options({"--nproc-per-node", "8", "hostname"}, kSlurm);
  ASSERT_TRUE(per_node.has_value()) << per_node.error().message();
  EXPECT_EQ(per_node->job.hosts[0].slots, 8);
  EXPECT_EQ(per_node->job.hosts[1].slots, 8);
  const auto without = parse_options({"--exclude", "n1", "hostname"}, kSlurm);
  ASSERT_TRUE(without.has_value()) << without.error().message();
  ASSERT_EQ(without->job.hosts.size(), 1u);
  EXPECT_EQ(without->job.hosts[0].name, "n2");
  const auto more = parse_options({"-np", "5", "hostname"}, kSlurm);
  ASSERT_FALSE(more.has_value());
  EXPECT_EQ(more.error().hint, "-np 4, or -H n1:4,n2:1");
}

TEST(Options, NamedHostsWinOverTheBatchJob) {
  const auto o = parse_options({"-np", "2", "-H", "localhost:2", "hostname"}, kSlurm);
  ASSERT_TRUE(o.has_value());
  ASSERT_EQ(o->job.hosts.size(), 1u);
  EXPECT_EQ(o->job.hosts[0].name, "localhost");
  EXPECT_EQ(o->job.hosts[0].job, "");
  const auto unknown = parse_options({"hostname"}, {{"SLURM_JOB_ID", "4"}});
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, Errc::kUsage);
  EXPECT_TRUE(parse_options({"-H", "localhost", "hostname"}, {{"SLURM_JOB_ID", "4"}}).has_value());
}

TEST(Options, OneOfSeveralTasksMayStartWorkersOnItsOwnHostAlone) {
  const launcher::Environment env = {{"OMPI_COMM_WORLD_SIZE", "2"}};
  EXPECT_FALSE(parse_options({"hostname"}, env).has_value());
  EXPECT_FALSE(parse_options({"-H", "localhost,h1", "hostname"}, env).has_value());
  EXPECT_TRUE(parse_options({"-np", "2", "-H", "localhost:2", "hostname"}, env).has_value());
  EXPECT_TRUE(parse_options({"--version"}, env).has_value());
}

TEST(Options, ReadsAHostfile) {
  const auto path = std::filesystem::temp_directory_path() / ("drun-hosts-" + std::to_string(::getpid()));
  std::ofstream(path) << "localhost:2\nhost slots=2\n";
  const auto o = parse({"--hostfile", path.string(), "python3", "train.py"});
  std::filesystem::remove(path);
  ASSERT_TRUE(o.has_value()) << o.error().message();
  EXPECT_EQ(o->job.hosts.size(), 2u);
  EXPECT_EQ(o->job.np, 0);
}

TEST(Options, OneWorkerIsNotTaggedUnlessAsked) {
  EXPECT_EQ(parse({"-np", "1", "true"})->job.output.tag, TagStyle::kNone);
  EXPECT_EQ(parse({"-np", "1", "--tag-output", "true"})->job.output.tag, TagStyle::kRank);
  EXPECT_EQ(parse({"-np", "2", "--no-tag-output", "true"})->job.output.tag, TagStyle::kNone);
  EXPECT_TRUE(parse({"--merge-stderr-to-stdout", "true"})->job.output.merges_stderr);
  EXPECT_FALSE(parse({"true"})->job.output.merges_stderr);
}

TEST(Options, TheKindOfTagIsAttachedAndNeverTakesTheCommand) {
  const auto plain = parse({"-np", "2", "--tag-output", "host", "arg"});
  ASSERT_TRUE(plain.has_value()) << plain.error().message();
  EXPECT_EQ(plain->job.output.tag, TagStyle::kRank);
  EXPECT_EQ(plain->job.command, (std::vector<std::string>{"host", "arg"}));
  const auto host = parse({"-np", "2", "--tag-output=host", "rank", "arg"});
  ASSERT_TRUE(host.has_value()) << host.error().message();
  EXPECT_EQ(host->job.output.tag, TagStyle::kHost);
  EXPECT_EQ(host->job.command, (std::vector<std::string>{"rank", "arg"}));
  EXPECT_EQ(parse({"--tag-output=rank", "true"})->job.output.tag, TagStyle::kRank);
  EXPECT_EQ(parse({"--tag-output=host", "true"})->job.output.tag, TagStyle::kHost);
}

TEST(Options, ShowsTheRanksThatAreListed) {
  EXPECT_TRUE(parse({"-np", "4", "true"})->job.output.shown.empty());
  EXPECT_EQ(parse({"-np", "4", "--ranks", "0,2-3", "true"})->job.output.shown,
            (std::vector<bool>{true, false, true, true}));
}

TEST(Options, StdinGoesToARankToAllOrToNone) {
  EXPECT_EQ(parse({"-np", "2", "true"})->job.stdin_rank, 0);
  EXPECT_EQ(parse({"-np", "2", "--stdin", "1", "true"})->job.stdin_rank, 1);
  EXPECT_EQ(parse({"-np", "2", "--stdin", "all", "true"})->job.stdin_mode, StdinMode::kAll);
  EXPECT_EQ(parse({"-np", "2", "--stdin", "none", "true"})->job.stdin_mode, StdinMode::kNone);
  EXPECT_EQ(error_of({"-np", "2", "--stdin", "2", "true"}).subject, "--stdin");
  EXPECT_EQ(error_of({"-np", "2", "--stdin", "-1", "true"}).subject, "--stdin");
}

TEST(Options, TimelineIsTheOptionOrTheVariable) {
  EXPECT_EQ(parse({"true"})->job.timeline_file, "");
  EXPECT_EQ(parse({"--timeline", "/tmp/t.json", "true"})->job.timeline_file, "/tmp/t.json");
  const launcher::Environment with = {{"DRUN_TIMELINE", "/tmp/v.json"}};
  EXPECT_EQ(parse_options({"true"}, with)->job.timeline_file, "/tmp/v.json");
  EXPECT_EQ(parse_options({"--timeline", "/tmp/t.json", "true"}, with)->job.timeline_file, "/tmp/t.json");
  EXPECT_EQ(parse({"--timeline", "-", "true"}).error().subject, "--timeline");
  EXPECT_EQ(parse_options({"true"}, {{"DRUN_TIMELINE", "-"}}).error().subject, "DRUN_TIMELINE");
}

TEST(Options, StallTimeoutIsAMinuteUnlessSaidOtherwise) {
  EXPECT_EQ(parse({"true"})->job.stall_timeout, std::chrono::seconds(60));
  EXPECT_EQ(parse({"--stall-timeout", "2.5", "true"})->job.stall_timeout, std::chrono::milliseconds(2500));
  EXPECT_EQ(parse({"--stall-timeout", "0", "true"})->job.stall_timeout, std::chrono::milliseconds(0));
  EXPECT_FALSE(parse({"--stall-timeout", "-1", "true"}));
}

TEST(Options, TheCacheIsReadUnlessToldNotTo) {
  EXPECT_TRUE(parse({"true"})->job.read_cache);
  EXPECT_FALSE(parse({"--no-cache", "true"})->job.read_cache);
}

TEST(Options, TheCacheIsWhereTheXdgSpecificationSays) {
  const auto directory = [](const launcher::Environment& env) {
    return parse_options({"true"}, env)->job.cache_directory;
  };
  EXPECT_EQ(directory({{"HOME", "/home/me"}}), "/home/me/.cache/drun");
  EXPECT_EQ(directory({{"HOME", "/home/me"}, {"XDG_CACHE_HOME", "/var/cache/me"}}), "/var/cache/me/drun");
  EXPECT_EQ(directory({{"HOME", "/home/me"}, {"XDG_CACHE_HOME", "relative"}}), "/home/me/.cache/drun");
  EXPECT_EQ(directory({}), "");
}

TEST(Options, SecondsBecomeMilliseconds) {
  const auto o =
      parse({"--grace", "0.5", "--timeout", "90", "--stack-timeout", "0", "--heartbeat-timeout", "3", "true"});
  ASSERT_TRUE(o.has_value());
  EXPECT_EQ(o->job.grace.count(), 500);
  EXPECT_EQ(o->job.timeout.count(), 90000);
  EXPECT_EQ(o->job.stack_timeout.count(), 0);
  EXPECT_EQ(o->job.heartbeat_timeout.count(), 3000);
}

struct Bad {
  std::vector<std::string> args;
  std::string subject;   // of the error
  std::string contains;  // part of the cause or the hint
};

TEST(Options, EachBadInputIsNamedWithWhatToType) {
  const std::vector<Bad> table = {
      {{}, "", "drun -np 2 ./train"},
      {{"-np", "2"}, "", "no command given"},
      {{"-np", "0", "true"}, "-np", "0 workers"},
      {{"-np", "-3", "true"}, "-np", "not a number"},
      {{"-np", "two", "true"}, "-np", "not a number"},
      {{"-np", "3", "-H", "a:1,b:1", "true"}, "-np 3", "only 2 slots"},
      {{"-H", "", "true"}, "-H", ""},
      {{"-H", "a,,b", "true"}, "-H", ""},
      {{"-H", "a:0", "true"}, "-H", ""},
      {{"-H", "node[01-", "true"}, "-H", ""},
      {{"-H", "a:2", "b:2", "./train"}, "command", "comma"},
      {{"--hostfile", "/nonexistent/hosts", "true"}, "/nonexistent/hosts", "can't be read"},
      {{"-i", "/nonexistent/key", "true"}, "", "/nonexistent/key"},
      {{"--hots", "a", "true"}, "--hots", "--hosts"},
      {{"--frobnicate", "true"}, "--frobnicate", "unknown option"},
      {{"-p", "70000", "true"}, "-p", "70000"},
      {{"-p", "x", "true"}, "", ""},
      {{"--transport", "carrier-pigeon", "true"}, "--transport", "none of ssh, openssh"},
      {{"--tag-output=color", "true"}, "--tag-output", "none of rank, host"},
      {{"-np", "4", "--ranks", "4", "true"}, "--ranks", "--ranks 0-3"},
      {{"-np", "4", "--ranks", "2-9", "true"}, "--ranks", "no rank 4 among 4 workers"},
      {{"-np", "4", "--ranks", "3-2", "true"}, "--ranks", "backwards"},
      {{"-np", "4", "--ranks", "0,,1", "true"}, "--ranks", "neither"},
      {{"--ranks", "1", "true"}, "--ranks", "no rank 1 among 1 worker"},
      {{"--start-timeout", "0", "true"}, "--start-timeout", "seconds"},
      {{"--events", "-", "true"}, "--events", "stdout"},
      {{"-x", "NO_SUCH_NAME_HERE", "true"}, "", "NO_SUCH_NAME_HERE"},
      {{"-H", "a:1", "--hostfile", "f", "true"}, "-H", "--hostfile"},
      {{"-H", "h1 h2\th3  h4", "true"}, "-H", "h1,h2,h3,h4"},
      {{"-H", "a:1,b:1", "--exclude", "c", "true"}, "--exclude", "c is not among the hosts: a, b"},
      {{"-H", "a:1,b:1", "--exclude", "a:0,1", "true"}, "--exclude", "whole hosts"},
      {{"-H", "a:1,b:1", "--exclude", "@bad,a:1", "true"}, "--exclude", "whole hosts"},
      {{"-H", "a:1,b:1", "--exclude", "b", "--exclude", "a", "true"}, "--exclude", "no host is left"},
      {{"-H", "a:1,b:1", "--exclude", "", "true"}, "--exclude", "--exclude b,n[03-05]"},
      {{"-H", "a:1,b:1", "--exclude", "b,,a", "true"}, "--exclude", "an item is empty"},
      {{"-H", "a:1,b:1", "--exclude", "@bad", "true"}, "--exclude", "@bad"},
      {{"-np", "2", "-H", "a:1,b:1", "--exclude", "b", "true"}, "-np 2", "only 1 slot"},
      {{"-np", "1", "./a", ":", "-np", "1", "./b"}, "command", "one program"},
      {{"cehck", "-H", "h1"}, "command", "drun check"},
      {{"--wdir", "~", "true"}, "--wdir", "\"$HOME\""},
      {{"--nproc-per-node", "0", "true"}, "--nproc-per-node", "from 1 to 1024"},
      {{"--nproc-per-node", "auto", "true"}, "--nproc-per-node", "--nproc-per-node gpu"},
      {{"--nproc-per-node", "gpu", "--dry-run", "true"}, "--dry-run", "number of GPUs"},
      {{"--nproc-per-node", "gpu", "--explain-env", "0", "true"}, "--explain-env", "number of GPUs"},
      {{"--nproc-per-node", "gpu", "--ranks", "0", "true"}, "--ranks", "number of GPUs"},
      {{"--nproc-per-node", "gpu", "--oversubscribe", "true"}, "--oversubscribe", "number of GPUs"},
      {{"--nproc-per-node", "gpu", "--stdin", "1", "true"}, "--stdin", "number of GPUs"},
      {{"--nproc-per-node", "gpu", "-x", "CUDA_VISIBLE_DEVICES=0", "true"}, "-x", "number of GPUs"},
      {{"--nproc-per-node", "4", "-H", "a:3", "true"}, "--nproc-per-node", "a has 3 slots"},
      {{"-np", "8", "--nproc-per-node", "3", "-H", "a,b", "true"}, "-np 8", "-np 6, or more hosts"},
      {{"-hostlist", "a", "true"}, "-hostlist", "unknown option"},
      {{"-pernode", "true"}, "-pernode", "unknown option"},
      {{"-p", "abc", "true"}, "--ssh-port", "'abc' is not a number"},
      {{"--timeout", "1h", "true"}, "--timeout", "'1h' is not a number"},
      {{"--explain-env", "x", "true"}, "--explain-env", "'x' is not a number"},
      {{"--launch-agent", "la", "-p", "22", "-H", "a", "true"}, "--ssh-port", "does not get it"},
      {{"--launch-agent", "la", "-F", "none", "-H", "a", "true"}, "--ssh-config", "does not get it"},
  };
  for (const auto& bad : table) {
    std::string line;
    for (const auto& a : bad.args) line += a + " ";
    SCOPED_TRACE(line);
    const Error error = error_of(bad.args);
    if (!bad.subject.empty()) {
      EXPECT_EQ(error.subject.substr(0, bad.subject.size()), bad.subject) << error.message();
    }
    EXPECT_NE((error.message() + " " + error.hint).find(bad.contains), std::string::npos)
        << error.message() << " | " << error.hint;
  }
}

TEST(Options, AnErrorNamesItsOptionOnce) {
  EXPECT_EQ(error_of({"--mpi", "x", "true"}).message(), "--mpi: 'x' is none of refuse, none");
  EXPECT_EQ(error_of({"--compat", "x", "true"}).message(), "--compat: 'x' is none of horovod, real-horovod");
  EXPECT_EQ(error_of({"--transport", "x", "true"}).message(), "--transport: 'x' is none of ssh, openssh");
}

TEST(Options, ARealHorovodNeedsNoPackageOfDruns) {
  EXPECT_FALSE(parse({"true"})->job.env.real_horovod);
  const auto o = parse({"--compat", "real-horovod", "true"});
  ASSERT_TRUE(o);
  EXPECT_TRUE(o->job.env.real_horovod);
  EXPECT_EQ(o->job.env.compat_folder, "");
}

TEST(Options, WordsOfOtherLaunchersAreTaken) {
  const auto o = parse({"-n", "3", "--host", "[fd77::11],[fd77::12]:2", "true"});
  ASSERT_TRUE(o.has_value()) << o.error().message();
  EXPECT_EQ(o->job.np, 3);
  ASSERT_EQ(o->job.hosts.size(), 2u);
  EXPECT_EQ(o->job.hosts[0].name, "fd77::11");
  EXPECT_EQ(o->job.hosts[1].name, "fd77::12");
  EXPECT_EQ(o->job.hosts[1].slots, 2);
  EXPECT_EQ(parse({"-H", "[fd77::11],[fd77::12]", "true"})->job.hosts.size(), 2u);
}

TEST(Options, WorkersOfEachHostInPlaceOfSlots) {
  const auto o = parse({"--nproc_per_node=4", "-H", "a,b", "true"});
  ASSERT_TRUE(o.has_value()) << o.error().message();
  for (const auto& host : o->job.hosts) EXPECT_EQ(host.slots, 4);
  EXPECT_EQ(parse({"--nproc-per-node", "4", "true"})->job.hosts[0].slots, 4);
  EXPECT_EQ(parse({"--nproc-per-node", "2", "-H", "a:8", "true"})->job.hosts[0].slots, 2);
  EXPECT_EQ(parse({"--nproc-per-node", "8", "--oversubscribe", "-H", "a:2", "true"})->job.hosts[0].slots, 8);
}

TEST(Options, AWorkerOnEachGpu) {
  const auto o = parse({"--nproc-per-node", "gpu", "-np", "7", "-H", "a,b:2", "true"});
  ASSERT_TRUE(o.has_value()) << o.error().message();
  EXPECT_TRUE(o->job.slot_per_gpu);
  EXPECT_EQ(o->job.np, 7);
  EXPECT_EQ(o->job.output.tag, launcher::TagStyle::kRank);
  EXPECT_FALSE(parse({"--nproc-per-node", "4", "true"})->job.slot_per_gpu);
}

TEST(Options, MoreWorkersThanSlotsWhereThatIsAskedFor) {
  const auto o = parse({"--oversubscribe", "-np", "8", "-H", "a:2,b:1", "true"});
  ASSERT_TRUE(o.has_value()) << o.error().message();
  EXPECT_EQ(o->job.hosts[0].slots, 6);
  EXPECT_EQ(o->job.hosts[1].slots, 2);
}

TEST(Options, BindsToCoresOrNodesOnRequest) {
  EXPECT_EQ(parse({"true"})->job.bind_to, control::BindTo::kNone);
  EXPECT_EQ(parse({"--bind-to", "none", "true"})->job.bind_to, control::BindTo::kNone);
  EXPECT_EQ(parse({"--bind-to=core", "true"})->job.bind_to, control::BindTo::kCore);
  const auto numa = parse({"-bind-to", "numa", "--oversubscribe", "true"});
  ASSERT_TRUE(numa.has_value()) << numa.error().message();
  EXPECT_EQ(numa->job.bind_to, control::BindTo::kNuma);
  EXPECT_TRUE(numa->job.shares_cores);
  EXPECT_FALSE(parse({"--bind-to=core", "true"})->job.shares_cores);
  EXPECT_EQ(error_of({"--bind-to", "socket", "true"}).subject, "--bind-to");
}

// A file of that name in PATH is a program.
TEST(Options, AWordLikeASubcommandIsAProgramIfThereIsOne) {
  const drun::testing::TempFolder folder;
  const launcher::Environment env{{"PATH", "/nowhere:" + folder.path()}};
  EXPECT_FALSE(parse_options({"chek"}, env).has_value());
  folder.write("chek", "#!/bin/sh\n");
  ASSERT_EQ(::chmod(folder.path("chek").c_str(), 0755), 0);
  EXPECT_TRUE(parse_options({"chek"}, env).has_value());
  EXPECT_TRUE(parse_options({"./chek"}, {}).has_value());
}

TEST(Options, HelpAndVersionNeedNoCommand) {
  EXPECT_EQ(parse({"--help"})->action, Action::kHelp);
  EXPECT_NE(parse({"-h"})->help.find("usage: drun"), std::string::npos);
  EXPECT_EQ(parse({"--version"})->action, Action::kVersion);
  EXPECT_EQ(parse({"--check-build"})->action, Action::kCheckBuild);
}

TEST(Options, TheHelpShowsWhatCanBeTyped) {
  const std::string help = parse({"--help"})->help;
  EXPECT_NE(help.find("\nHosts:\n  -np, --num-proc N  "), std::string::npos);
  EXPECT_NE(help.find("between TERM and KILL; default: 5\n"), std::string::npos);
  std::size_t at = 0;
  for (const char* section :
       {"Hosts", "Network", "Environment", "Input and output", "Time limits", "Reports", "Other options"}) {
    const auto next = help.find("\n" + std::string(section) + ":\n");
    ASSERT_NE(next, std::string::npos) << section;
    EXPECT_GT(next, at) << section;
    at = next;
  }
  EXPECT_EQ(help.find("\nOptions:\n"), std::string::npos) << "an option of no section";
  EXPECT_NE(help.find("--tag-output[=rank|host]"), std::string::npos);
  EXPECT_EQ(help.find("tag-output{"), std::string::npos);
}

TEST(Options, TheHelpFitsATerminal) {
  const std::string help = parse({"--help"})->help;
  for (std::size_t at = 0; at < help.size();) {
    const auto end = help.find('\n', at);
    EXPECT_LE(end - at, 120u) << help.substr(at, end - at);
    at = end + 1;
  }
}

TEST(Options, AConfigFileGivesOptions) {
  const auto path = std::filesystem::temp_directory_path() / ("drun-config-" + std::to_string(::getpid()) + ".toml");
  std::ofstream(path) << "num-proc = 2\nssh-port = 2222\ngrace = 1\ntag-output = \"host\"\n";
  const auto o = parse({"--config", path.string(), "-p", "12345", "true"});
  std::filesystem::remove(path);
  ASSERT_TRUE(o.has_value()) << o.error().message();
  EXPECT_EQ(o->job.np, 2);
  EXPECT_EQ(o->job.connect.ssh.port, 12345);
  EXPECT_EQ(o->job.grace.count(), 1000);
  EXPECT_EQ(o->job.output.tag, TagStyle::kHost);
}

TEST(Options, AnErrorAboutAValueOfAConfigFileNamesFileAndKey) {
  const testing::TempFolder folder;
  const auto error_with = [&folder](const std::string& text) {
    folder.write("job.toml", text);
    const Error error = error_of({"--config", folder.path("job.toml"), "true"});
    return error.subject.substr(folder.path().size() + 1) + ": " + error.cause + "; " + error.hint;
  };
  EXPECT_EQ(error_with("pty = true\ngrace = -1\n"), "job.toml:2: 'grace': not a time in seconds; grace = 30");
  EXPECT_EQ(error_with("np = 0"), "job.toml:1: 'np': 0 workers; -np 1, or leave it out to use all slots");
  EXPECT_EQ(error_with("x = [\"=3\"]"),
            "job.toml:1: 'x': =3: the name of a variable is missing; -x NAME or -x NAME=VALUE");
  EXPECT_EQ(error_with("nump = 3"), "job.toml:1: unknown key 'nump'; did you mean num-proc?");
}

TEST(Options, APathInAConfigFileCountsFromItsFolder) {
  const testing::TempFolder folder;
  folder.write("sub/hosts", "localhost:3\n");
  folder.write("sub/job.toml", "hostfile = \"hosts\"\nreport = \"~/r.json\"\nevents = \"/e\"\n");
  const auto o = parse_options({"--config", folder.path("sub/job.toml"), "true"}, {{"HOME", "/h"}, {"PATH", "/bin"}});
  ASSERT_TRUE(o.has_value()) << o.error().message();
  EXPECT_EQ(o->job.hosts.at(0).slots, 3);
  EXPECT_EQ(o->report_file, "/h/r.json");
  EXPECT_EQ(o->job.events_file, "/e");
}

}  // namespace
}  // namespace drun::cli
