#include "launcher/plan/worker_env.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace drun::launcher {
namespace {

EnvRequest exports(std::vector<std::string> words) {
  EnvRequest r;
  r.exports = std::move(words);
  return r;
}

RankEnvInput rank_five() {
  RankEnvInput in;
  in.place.rank = 5;
  in.place.host = 2;
  in.place.local_rank = 1;
  in.place.local_size = 3;
  in.place.cross_rank = 4;
  in.place.cross_size = 6;
  in.size = 9;
  in.n_hosts = 7;
  in.master_addr = "10.0.0.1";
  in.master_port = 4711;
  in.job_id = "j1";
  in.rendezvous = "10.0.0.9:99";
  in.nccl_interfaces = {"eth0", "eth1"};
  in.ip_interface = "eth0";
  in.n_cpus = 16;
  return in;
}

// A worker's environment: the part common to its host, overridden by its own part.
Environment whole(const Environment& own, const EnvRequest& request, bool other_host) {
  Environment out = base_environment(own, request, other_host);
  for (const auto& [name, value] : rank_environment(rank_five(), request, own)) out[name] = value;
  return out;
}

TEST(BaseEnvironment, InheritsAllOrdinaryNames) {
  const Environment own{{"PATH", "/opt/bin:/bin"}, {"LANG", "C"}, {"OMP_NUM_THREADS", "4"}, {"with.dots", "1"}};
  Environment expected = own;
  expected["PYTHONUNBUFFERED"] = "1";
  EXPECT_EQ(base_environment(own, {}, true), expected);
  EXPECT_EQ(base_environment(own, {}, false), expected);
}

TEST(BaseEnvironment, LeavesPythonsBufferingToTheUser) {
  EXPECT_EQ(base_environment({{"PYTHONUNBUFFERED", ""}}, {}, true).at("PYTHONUNBUFFERED"), "");
  EXPECT_EQ(base_environment({}, exports({"PYTHONUNBUFFERED=0"}), true).at("PYTHONUNBUFFERED"), "0");
}

TEST(BaseEnvironment, ScrubsOuterLaunchers) {
  for (const char* name : {"MASTER_ADDR",
                           "MASTER_PORT",
                           "TORCHELASTIC_RUN_ID",
                           "TORCHELASTIC_USE_AGENT_STORE",
                           "PET_NODE_RANK",
                           "PMI_RANK",
                           "PMI_FD",
                           "PMI2_RANK",
                           "PMIX_RANK",
                           "PMIX_SERVER_URI41",
                           "PRTE_LAUNCHED",
                           "OMPI_COMM_WORLD_RANK",
                           "OMPI_UNIVERSE_SIZE",
                           "OMPI_MCA_orte_hnp_uri",
                           "OMPI_MCA_ess",
                           "OMPI_MCA_ess_base_jobid",
                           "MPI_LOCALRANKID",
                           "MPI_LOCALNRANKS",
                           "HYDI_CONTROL_FD",
                           "PALS_RANKID",
                           "MV2_COMM_WORLD_RANK",
                           "SLURM_PROCID",
                           "SLURM_LOCALID",
                           "SLURM_NTASKS",
                           "SLURM_NODEID",
                           "SLURM_STEP_ID",
                           "SLURM_STEP_NODELIST",
                           "SLURM_TASKS_PER_NODE",
                           "HOROVOD_RANK",
                           "HOROVOD_SIZE",
                           "HOROVOD_LOCAL_RANK",
                           "HOROVOD_CROSS_SIZE",
                           "HOROVOD_HOSTNAME",
                           "HOROVOD_GLOO_IFACE",
                           "HOROVOD_GLOO_RENDEZVOUS_ADDR",
                           "HOROVOD_CONTROLLER",
                           "HOROVOD_CPU_OPERATIONS"}) {
    const Environment own{{name, "outer"}};
    EXPECT_EQ(base_environment(own, {}, false).count(name), 0u) << name;
    EXPECT_EQ(base_environment(own, {}, true).count(name), 0u) << name;
    EXPECT_EQ(base_environment(own, exports({name}), true)[name], "outer") << name << " by -x";
    EXPECT_EQ(base_environment(own, exports({"*"}), true).count(name), 0u) << name << " by -x '*'";
    EXPECT_EQ(base_environment(own, exports({std::string(name).substr(0, 3) + "*"}), true).count(name), 0u) << name;
  }
}

TEST(BaseEnvironment, KeepsWhatLooksSimilarButIsTheUsers) {
  for (const char* name : {"SLURM_JOB_ID",
                           "SLURM_JOB_NODELIST",
                           "SLURM_ARRAY_TASK_ID",
                           "SLURM_CPUS_PER_TASK",
                           "OMPI_MCA_btl",
                           "OMPI_MCA_pml",
                           "HOROVOD_FUSION_THRESHOLD",
                           "HOROVOD_GLOO_TIMEOUT_SECONDS",
                           "HOROVOD_TIMELINE",
                           "MASTER_KEY",
                           "RANKS",
                           "MY_RANK",
                           "GROUP_ID",
                           "ROLE_ARN",
                           "DRUN_NCCL_LIB",
                           "NCCL_DEBUG",
                           "HOMEBREW_PREFIX",
                           "USERNAME",
                           "SSHPASS_X",
                           "__X",
                           "I_MPI_FABRICS"}) {
    EXPECT_EQ(base_environment({{name, "v"}}, {}, true).count(name), 1u) << name;
  }
}

TEST(BaseEnvironment, LeavesOutWhatDescribesTheHeadHost) {
  for (const char* name :
       {"SSH_AUTH_SOCK", "SSH_CONNECTION", "HOSTNAME", "HOME", "USER", "LOGNAME", "SHELL", "MAIL", "PWD", "OLDPWD",
        "TMPDIR", "DISPLAY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "KRB5CCNAME", "BASH_FUNC_module%%", "_"}) {
    const Environment own{{name, "head"}};
    EXPECT_EQ(base_environment(own, {}, false).count(name), 0u) << name;
    EXPECT_EQ(base_environment(own, {}, true).count(name), 0u) << name;
    EXPECT_EQ(base_environment(own, exports({name}), true)[name], "head") << name << " by -x";
    EXPECT_EQ(base_environment(own, exports({"*"}), true).count(name), 0u) << name << " by -x '*'";
  }
  EXPECT_EQ(base_environment({{"XDG_DATA_HOME", "/d"}}, exports({"XDG_*"}), true).count("XDG_DATA_HOME"), 1u);
}

TEST(BaseEnvironment, KeepsDeviceNamesOnThisHost) {
  const Environment own{{"CUDA_VISIBLE_DEVICES", "0,1"}, {"NCCL_SOCKET_IFNAME", "eth0"}, {"GLOO_SOCKET_IFNAME", "e"}};
  const auto here = base_environment(own, {}, false);
  const auto there = base_environment(own, {}, true);
  for (const auto& [name, value] : own) {
    EXPECT_EQ(here.count(name), 1u) << name;
    EXPECT_EQ(there.count(name), 0u) << name;
  }
  EXPECT_EQ(base_environment(own, exports({"CUDA_VISIBLE_DEVICES"}), true)["CUDA_VISIBLE_DEVICES"], "0,1");
  EXPECT_EQ(base_environment(own, exports({"CUDA_VISIBLE_DEVICES=3"}), true)["CUDA_VISIBLE_DEVICES"], "3");
}

TEST(BaseEnvironment, OrdersOwnThenFileThenExports) {
  const Environment own{{"A", "own"}, {"B", "own"}, {"C", "own"}, {"D", "own"}};
  EnvRequest request = exports({"C=x", "D", "C=y"});
  request.file = {{"B", "file"}, {"C", "file"}, {"D", "file"}};
  const auto env = base_environment(own, request, true);
  EXPECT_EQ(env.at("A"), "own");
  EXPECT_EQ(env.at("B"), "file");
  EXPECT_EQ(env.at("C"), "y") << "the last -x wins";
  EXPECT_EQ(env.at("D"), "own") << "-x NAME stands for drun's own value";
}

TEST(BaseEnvironment, WithoutInheritanceHoldsOnlyWhatWasAskedFor) {
  EnvRequest request = exports({"PATH", "LIB_*", "NEW=1"});
  request.inherit = false;
  request.file = {{"F", "2"}};
  const Environment own{{"PATH", "/bin"}, {"LIB_A", "a"}, {"LIB_B", "b"}, {"OTHER", "o"}};
  EXPECT_EQ(
      base_environment(own, request, true),
      (Environment{
          {"PATH", "/bin"}, {"LIB_A", "a"}, {"LIB_B", "b"}, {"NEW", "1"}, {"F", "2"}, {"PYTHONUNBUFFERED", "1"}}));
  request.exports = {"*"};
  EXPECT_EQ(base_environment(own, request, true).size(), 6u);
}

TEST(BaseEnvironment, KeepsEveryByteOfAValue) {
  std::string all;
  for (int c = 1; c < 256; ++c) all += static_cast<char>(c);
  const Environment own{{"BIG", std::string(300 * 1024, 'x')},
                        {"LINES", "a\nb\n\n"},
                        {"BYTES", all},
                        {"EMPTY", ""},
                        {"QUOTES", "'\"`$(x)"}};
  const auto env = base_environment(own, exports({"V=a=b=c", "W="}), true);
  for (const auto& [name, value] : own) EXPECT_EQ(env.at(name), value) << name;
  EXPECT_EQ(env.at("V"), "a=b=c");
  EXPECT_EQ(env.at("W"), "");
}

TEST(BaseEnvironment, NeverHoldsTheKeyOrTheAgentOfAnotherJob) {
  const Environment own{{"DRUN_KEY", "k"}, {"DRUN_AGENT", "/run/x"}, {"DRUN_JOB_ID", "old"}};
  EnvRequest request = exports({"DRUN_KEY", "DRUN_*", "DRUN_AGENT=/y"});
  request.file = {{"DRUN_KEY", "f"}};
  const auto env = base_environment(own, request, false);
  for (const auto& [name, value] : own) EXPECT_EQ(env.count(name), 0u) << name;
}

TEST(RankEnvironment, HoldsEveryName) {
  EXPECT_EQ(rank_environment(rank_five(), {}, {}), (Environment{{"RANK", "5"},
                                                                {"LOCAL_RANK", "1"},
                                                                {"WORLD_SIZE", "9"},
                                                                {"LOCAL_WORLD_SIZE", "3"},
                                                                {"LOCAL_SIZE", "3"},
                                                                {"NODE_RANK", "2"},
                                                                {"GROUP_RANK", "2"},
                                                                {"GROUP_WORLD_SIZE", "7"},
                                                                {"CROSS_RANK", "4"},
                                                                {"CROSS_SIZE", "6"},
                                                                {"ROLE_NAME", "default"},
                                                                {"ROLE_RANK", "5"},
                                                                {"ROLE_WORLD_SIZE", "9"},
                                                                {"MASTER_ADDR", "10.0.0.1"},
                                                                {"MASTER_PORT", "4711"},
                                                                {"DRUN_RANK", "5"},
                                                                {"DRUN_SIZE", "9"},
                                                                {"DRUN_LOCAL_RANK", "1"},
                                                                {"DRUN_LOCAL_SIZE", "3"},
                                                                {"DRUN_CROSS_RANK", "4"},
                                                                {"DRUN_CROSS_SIZE", "6"},
                                                                {"DRUN_JOB_ID", "j1"},
                                                                {"DRUN_RENDEZVOUS", "10.0.0.9:99"},
                                                                {"NCCL_SOCKET_IFNAME", "=eth0,eth1"},
                                                                {"GLOO_SOCKET_IFNAME", "eth0"},
                                                                {"TP_SOCKET_IFNAME", "eth0"},
                                                                {"NCCL_RAS_ADDR", "localhost:21060"},
                                                                {"OMP_NUM_THREADS", "5"},
                                                                {"TORCHELASTIC_RUN_ID", "j1"},
                                                                {"TORCHELASTIC_RESTART_COUNT", "0"},
                                                                {"TORCHELASTIC_MAX_RESTARTS", "0"},
                                                                {"JAX_COORDINATOR_ADDRESS", "10.0.0.1:4711"}}));
}

TEST(RankEnvironment, BracketsAnIpv6AddressForJax) {
  RankEnvInput in = rank_five();
  in.master_addr = "fd00::1";
  EXPECT_EQ(rank_environment(in, {}, {}).at("JAX_COORDINATOR_ADDRESS"), "[fd00::1]:4711");
  in.master_port = 0;
  EXPECT_EQ(rank_environment(in, {}, {}).count("JAX_COORDINATOR_ADDRESS"), 0u);
}

TEST(Threads, AreTheProcessorsOfTheHostDividedByItsWorkers) {
  EXPECT_EQ(threads_of_worker(8, 2, {}, {}), 4);
  EXPECT_EQ(threads_of_worker(8, 3, {}, {}), 2);
  EXPECT_EQ(threads_of_worker(2, 4, {}, {}), 1);
  EXPECT_EQ(threads_of_worker(8, 1, {}, {}), 0) << "it has them for itself";
  EXPECT_EQ(threads_of_worker(0, 4, {}, {}), 0) << "nobody knows how many there are";
}

TEST(Threads, AreTheUsersWhereHeHasSetThem) {
  const Environment own{{"OMP_NUM_THREADS", "3"}};
  EXPECT_EQ(threads_of_worker(8, 2, {}, own), 0);
  EXPECT_EQ(threads_of_worker(8, 2, exports({"OMP_NUM_THREADS=1"}), {}), 0);
  EnvRequest request;
  request.file = {{"OMP_NUM_THREADS", "1"}};
  EXPECT_EQ(threads_of_worker(8, 2, request, {}), 0);
  request = {};
  request.inherit = false;
  EXPECT_EQ(threads_of_worker(8, 2, request, own), 4) << "--env none";
  EXPECT_EQ(whole(own, {}, true).at("OMP_NUM_THREADS"), "3");
}

TEST(Threads, AreTheCoresThatAWorkerIsBoundTo) {
  EXPECT_EQ(threads_of_worker(8, 2, {}, {}, 3), 3);
  EXPECT_EQ(threads_of_worker(8, 1, {}, {}, 3), 0) << "OpenMP sees how many it has for itself";
  EXPECT_EQ(threads_of_worker(8, 2, {}, {{"OMP_NUM_THREADS", "1"}}, 3), 0);
  RankEnvInput in = rank_five();
  in.bound_threads = 3;
  EXPECT_EQ(rank_environment(in, {}, {}).at("OMP_NUM_THREADS"), "3");
}

TEST(Threads, AreToldInOneLine) {
  EXPECT_EQ(threads_in_short({{"a", 8, 1, 0}}), "");
  EXPECT_EQ(threads_in_short({{"a", 8, 1, 0}, {"b", 8, 2, 4}}),
            "OMP_NUM_THREADS=4: 2 workers share the 8 processors of b");
  EXPECT_EQ(threads_in_short({{"a", 1, 2, 1}}), "OMP_NUM_THREADS=1: 2 workers share the 1 processor of a");
  EXPECT_EQ(threads_in_short({{"a", 8, 8, 1}, {"b", 64, 8, 8}}),
            "OMP_NUM_THREADS=1 to 8: the workers of a host share its processors");
  EXPECT_EQ(threads_in_short({{"a", 8, 2, 3, true}, {"a", 8, 2, 4, true}}),
            "OMP_NUM_THREADS=3 to 4: the cores that a worker has by --bind-to");
}

TEST(RankEnvironment, ShowsOneGpuIfTheHostListSaysWhich) {
  RankEnvInput in = rank_five();
  in.place.gpu = "2";
  const Environment own{{"CUDA_VISIBLE_DEVICES", "0,1,2,3"}};
  EXPECT_EQ(rank_environment(in, exports({"CUDA_VISIBLE_DEVICES=7"}), own).at("CUDA_VISIBLE_DEVICES"), "2");
  EXPECT_EQ(rank_environment(in, {}, own).at("CUDA_DEVICE_ORDER"), "PCI_BUS_ID");
  in.place.gpu.clear();
  EXPECT_EQ(rank_environment(in, {}, own).count("CUDA_VISIBLE_DEVICES"), 0u);
  EXPECT_EQ(rank_environment(in, {}, own).count("CUDA_DEVICE_ORDER"), 0u);
}

TEST(RankEnvironment, NamesNoInterfaceWhereNoneWasChosen) {
  RankEnvInput in = rank_five();
  in.nccl_interfaces.clear();
  in.ip_interface.clear();
  const auto env = rank_environment(in, {}, {});
  EXPECT_EQ(env.count("NCCL_SOCKET_IFNAME"), 0u);
  EXPECT_EQ(env.count("GLOO_SOCKET_IFNAME"), 0u);
  EXPECT_EQ(env.count("TP_SOCKET_IFNAME"), 0u);
}

TEST(WorkerEnvironment, AnInheritedRankNeverWins) {
  const auto assigned = rank_environment(rank_five(), {}, {});
  Environment own;
  for (const auto& [name, value] : assigned) own[name] = "inherited";
  own.erase("OMP_NUM_THREADS");  // the user's value is kept
  own["HOROVOD_RANK"] = "7";
  for (const bool other_host : {false, true}) {
    const auto env = whole(own, {}, other_host);
    for (const auto& [name, value] : assigned) EXPECT_EQ(env.at(name), value) << name;
    EXPECT_EQ(env.count("HOROVOD_RANK"), 0u);
  }
}

TEST(WorkerEnvironment, NoRequestTakesAnAssignedRankAway) {
  EnvRequest request = exports({"RANK", "LOCAL_RANK=9", "WORLD_SIZE=9", "DRUN_*", "*"});
  request.file = {{"RANK", "9"}, {"DRUN_RANK", "8"}};
  const auto env = whole({{"RANK", "3"}, {"DRUN_RANK", "3"}}, request, true);
  EXPECT_EQ(env.at("RANK"), "5");
  EXPECT_EQ(env.at("LOCAL_RANK"), "1");
  EXPECT_EQ(env.at("DRUN_RANK"), "5");
}

TEST(WorkerEnvironment, WhatTheUserSetsWinsOverWhatIsDetected) {
  const Environment own{{"GLOO_SOCKET_IFNAME", "bond1"}, {"TP_SOCKET_IFNAME", "inherited"}};
  EnvRequest request = exports({"NCCL_SOCKET_IFNAME=bond0", "GLOO_SOCKET_IFNAME", "NCCL_IB_GID_INDEX=3"});
  request.file = {{"MASTER_PORT", "1234"}};
  const auto env = whole(own, request, true);
  EXPECT_EQ(env.at("NCCL_SOCKET_IFNAME"), "bond0");
  EXPECT_EQ(env.at("GLOO_SOCKET_IFNAME"), "bond1");
  EXPECT_EQ(env.at("TP_SOCKET_IFNAME"), "eth0") << "not asked for by -x";
  EXPECT_EQ(env.at("MASTER_PORT"), "1234");
  EXPECT_EQ(env.at("MASTER_ADDR"), "10.0.0.1");
  EXPECT_EQ(env.at("NCCL_IB_GID_INDEX"), "3");
}

TEST(WorkerEnvironment, WithCompatItsPackageComesFirstAndScriptsFindHorovodsVariables) {
  EnvRequest request;
  request.compat_folder = "/drun/compat";
  const auto env = whole({{"PYTHONPATH", "/mine:/yours"}}, request, true);
  EXPECT_EQ(env.at("PYTHONPATH"), "/drun/compat:/mine:/yours");
  EXPECT_EQ(env.at("HOROVOD_RANK"), "5");
  EXPECT_EQ(env.at("HOROVOD_LOCAL_RANK"), env.at("DRUN_LOCAL_RANK"));
  EXPECT_EQ(env.at("HOROVOD_SIZE"), env.at("DRUN_SIZE"));
  EXPECT_EQ(whole({}, request, true).at("PYTHONPATH"), "/drun/compat");
}

TEST(WorkerEnvironment, ForARealHorovodItHasWhatHorovodrunSets) {
  EnvRequest request = exports({"HOROVOD_GLOO_IFACE=bond0"});
  request.real_horovod = true;
  RankEnvInput in = rank_five();
  in.horovod = {"node2", "10.0.0.1:4711/0123", 4711};
  const Environment own{{"HOROVOD_GLOO_RENDEZVOUS_ADDR", "outer"}, {"HOROVOD_RANK", "9"}};
  const auto env = rank_environment(in, request, own);
  Environment found;
  for (const auto& [name, value] : env) {
    if (name.find("HOROVOD_") == 0) found[name] = value;
  }
  EXPECT_EQ(found, (Environment{{"HOROVOD_CONTROLLER", "gloo"},
                                {"HOROVOD_CPU_OPERATIONS", "gloo"},
                                {"HOROVOD_CROSS_RANK", env.at("CROSS_RANK")},
                                {"HOROVOD_CROSS_SIZE", env.at("CROSS_SIZE")},
                                {"HOROVOD_GLOO_RENDEZVOUS_ADDR", "10.0.0.1:4711/0123"},
                                {"HOROVOD_GLOO_RENDEZVOUS_PORT", "4711"},
                                {"HOROVOD_HOSTNAME", "node2"},
                                {"HOROVOD_LOCAL_RANK", env.at("LOCAL_RANK")},
                                {"HOROVOD_LOCAL_SIZE", env.at("LOCAL_SIZE")},
                                {"HOROVOD_RANK", "5"},
                                {"HOROVOD_SIZE", env.at("WORLD_SIZE")}}));
  EXPECT_EQ(whole(own, request, true).at("HOROVOD_GLOO_IFACE"), "bond0");
  request.exports = {};
  EXPECT_EQ(rank_environment(in, request, own).at("HOROVOD_GLOO_IFACE"), "eth0");
  EXPECT_EQ(whole(own, request, true).count("PYTHONPATH"), 0u);
}

TEST(WorkerEnvironment, WithATerminalOfItsOwnHasNoSizeOfDruns) {
  const Environment own{{"COLUMNS", "110"}, {"LINES", "50"}, {"TERM", "xterm"}};
  const auto with_terminal = [&](const EnvRequest& request) {
    Environment out = base_environment(own, request, true);
    forget_terminal_size(out, own, request);
    return out;
  };
  EXPECT_EQ(with_terminal({}), (Environment{{"TERM", "xterm"}, {"PYTHONUNBUFFERED", "1"}}));
  EXPECT_EQ(with_terminal(exports({"COLUMNS"})).at("COLUMNS"), "110");
  EXPECT_EQ(with_terminal(exports({"LINES=7"})).at("LINES"), "7");
}

TEST(SetByUser, CountsExportsGlobsAndTheFile) {
  const Environment own{{"NCCL_SOCKET_IFNAME", "eth0"}, {"NCCL_DEBUG", "INFO"}, {"MASTER_ADDR", "x"}};
  EXPECT_TRUE(set_by_user(exports({"NCCL_SOCKET_IFNAME"}), own, "NCCL_SOCKET_IFNAME"));
  EXPECT_TRUE(set_by_user(exports({"NCCL_SOCKET_IFNAME=e"}), {}, "NCCL_SOCKET_IFNAME"));
  EXPECT_TRUE(set_by_user(exports({"NCCL_*"}), own, "NCCL_SOCKET_IFNAME"));
  EXPECT_TRUE(set_by_user(exports({"MASTER_ADDR"}), own, "MASTER_ADDR"));
  EnvRequest file;
  file.file = {{"A", "1"}};
  EXPECT_TRUE(set_by_user(file, {}, "A"));
  EXPECT_FALSE(set_by_user({}, own, "NCCL_SOCKET_IFNAME")) << "inherited is not asked for";
  EXPECT_FALSE(set_by_user(exports({"NCCL_*"}), {}, "NCCL_SOCKET_IFNAME")) << "nothing there to match";
  EXPECT_FALSE(set_by_user(exports({"NCCL_SOCKET_IFNAME"}), {}, "NCCL_SOCKET_IFNAME"));
  EXPECT_FALSE(set_by_user(exports({"M*"}), own, "MASTER_ADDR")) << "an outer job's, met by accident";
  EXPECT_FALSE(set_by_user(exports({"*"}), own, "NCCL_SOCKET_IFNAME"));
}

TEST(SetByUser, AgreesWithWhatTheWorkerFinds) {
  const Environment own{{"NCCL_SOCKET_IFNAME", "own"}, {"MASTER_ADDR", "own"}, {"HOME", "own"}, {"A", "own"}};
  for (const char* word :
       {"*", "?*", "N*", "*NAME", "MASTER_*", "MASTER_ADDR", "H*", "A", "A=own", "NCCL_SOCKET_IFNAME"}) {
    EnvRequest request = exports({word});
    request.inherit = false;
    const auto env = base_environment(own, request, true);
    for (const auto& [name, value] : own) {
      EXPECT_EQ(env.count(name) > 0, set_by_user(request, own, name)) << word << " and " << name;
    }
  }
}

TEST(CheckExports, AcceptsWhatCanBeHandedOn) {
  EnvRequest request = exports({"A", "B=", "B=1=2", "NOTHING_*", "*", "F", "DRUN_KEY", "with.dots=1"});
  request.file = {{"F", "1"}};
  EXPECT_TRUE(check_exports(request, {{"A", ""}}));
}

TEST(CheckExports, NamesTheWordAndWhatToType) {
  struct Bad {
    const char* word;
    const char* message;
    const char* hint;
  };
  const Bad table[] = {
      {"LD_LIBRARY_PAHT", "-x LD_LIBRARY_PAHT: not set in the environment of drun",
       "-x LD_LIBRARY_PAHT=VALUE, or -x LD_LIBRARY_PATH"},
      {"NO_SUCH_THING_AT_ALL", "-x NO_SUCH_THING_AT_ALL: not set in the environment of drun",
       "-x NO_SUCH_THING_AT_ALL=VALUE"},
      {"", "-x '': the name of a variable is missing", "-x NAME or -x NAME=VALUE"},
      {"=1", "-x =1: the name of a variable is missing", "-x NAME or -x NAME=VALUE"},
      {"A B=1", "-x 'A B=1': a space in the name of a variable", "one -x for each: -x A -x B=2"},
      {"A,B", "-x A,B: commas in the name of a variable", "one -x for each: -x A -x B=2"},
      {"A*=1", "-x 'A*=1': a pattern can't be given a value", "-x NAME=VALUE or -x 'PATTERN*'"},
      {"DRUN_KEY=abc", "-x DRUN_KEY: the key of a job is made by drun", "-x DRUN_KEY"},
  };
  const Environment own{{"LD_LIBRARY_PATH", "/lib"}};
  for (const auto& t : table) {
    const auto checked = check_exports(exports({t.word}), own);
    ASSERT_FALSE(checked) << t.word;
    EXPECT_EQ(checked.error().code, Errc::kUsage);
    EXPECT_EQ(checked.error().message(), t.message);
    EXPECT_EQ(checked.error().hint, t.hint);
  }
}

}  // namespace
}  // namespace drun::launcher
