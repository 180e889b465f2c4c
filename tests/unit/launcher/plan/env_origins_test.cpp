#include "launcher/plan/env_origins.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace drun::launcher {
namespace {

// The variables of a worker of another host, unless a test says otherwise.
struct Explained {
  EnvQuestion question;
  EnvRequest request;
  Environment own = {{"PATH", "/bin"}, {"HOME", "/me"}, {"A", "1"}};

  Explained() {
    question.place.rank = 5;
    question.place.local_rank = 1;
    question.place.local_size = 2;
    question.size = 9;
    question.n_hosts = 3;
    question.host = "h1";
    question.working_directory = "/work";
    question.exports_source = "-x";
    question.env_file_source = "--env-file f";
  }
  // "VALUE; SOURCE", "? ; SOURCE" for a value that only the start finds out, "" for no variable.
  std::string of(const std::string& name) const {
    const auto all = explain_environment(question, request, own);
    const auto found = std::find_if(all.begin(), all.end(), [&name](const auto& one) { return one.name == name; });
    if (found == all.end()) return "";
    EXPECT_FALSE(found->reason.empty()) << name;
    return found->value.value_or("?") + "; " + found->source;
  }
};

TEST(EnvOrigins, TheRankIsKnownAndTheNetworkIsNot) {
  const Explained e;
  EXPECT_EQ(e.of("RANK"), "5; drun");
  EXPECT_EQ(e.of("WORLD_SIZE"), "9; drun");
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT", "DRUN_JOB_ID", "NCCL_SOCKET_IFNAME", "OMP_NUM_THREADS",
                           "JAX_COORDINATOR_ADDRESS", "TORCHELASTIC_RUN_ID", "NCCL_RAS_ADDR", "DRUN_RENDEZVOUS"}) {
    EXPECT_EQ(e.of(name), "?; drun") << name;
  }
  EXPECT_EQ(e.of("TORCHELASTIC_RESTART_COUNT"), "0; drun");
  EXPECT_EQ(e.of("DRUN_AGENT"), "?; drun-agent on h1");
  EXPECT_EQ(e.of("DRUN_KEY"), "");
}

TEST(EnvOrigins, EachLayerIsASource) {
  Explained e;
  e.own.insert({{"RANK", "7"}, {"SLURM_JOB_ID", "4"}, {"SLURM_PROCID", "1"}});
  e.request.file = {{"B", "file"}, {"C", "file"}};
  e.request.exports = {"C=first", "C=last", "A"};
  EXPECT_EQ(e.of("B"), "file; --env-file f");
  EXPECT_EQ(e.of("C"), "last; -x");
  EXPECT_EQ(e.of("A"), "1; -x");
  EXPECT_EQ(e.of("PATH"), "/bin; environment of drun");
  EXPECT_EQ(e.of("SLURM_JOB_ID"), "4; batch scheduler");
  EXPECT_EQ(e.of("SLURM_PROCID"), "") << "of an outer launcher";
  EXPECT_EQ(e.of("RANK"), "5; drun");
  EXPECT_EQ(e.of("PYTHONUNBUFFERED"), "1; drun");
  e.request.inherit = false;
  EXPECT_EQ(e.of("SLURM_JOB_ID"), "");
  EXPECT_EQ(e.of("PATH"), "?; drun-agent on h1");
}

TEST(EnvOrigins, AValueOfTheUserWinsOverWhatDrunDetects) {
  Explained e;
  e.request.exports = {"MASTER_ADDR=here", "OMP_NUM_THREADS=2"};
  EXPECT_EQ(e.of("MASTER_ADDR"), "here; -x");
  EXPECT_EQ(e.of("OMP_NUM_THREADS"), "2; -x");
}

TEST(EnvOrigins, TheLoginOfAnotherHostIsUnknownThatOfThisOneIsNot) {
  Explained e;
  e.own["CUDA_VISIBLE_DEVICES"] = "3";
  EXPECT_EQ(e.of("HOME"), "?; drun-agent on h1");
  EXPECT_EQ(e.of("PWD"), "/work; drun-agent on h1");
  EXPECT_EQ(e.of("CUDA_VISIBLE_DEVICES"), "");
  e.question.is_head = true;
  EXPECT_EQ(e.of("HOME"), "/me; drun-agent on h1");
  EXPECT_EQ(e.of("MAIL"), "") << "drun's environment has none";
  EXPECT_EQ(e.of("CUDA_VISIBLE_DEVICES"), "3; environment of drun");
  e.question.place.gpu = "1";
  EXPECT_EQ(e.of("CUDA_VISIBLE_DEVICES"), "1; drun");
}

TEST(EnvOrigins, OptionsThatAddOrRemoveVariables) {
  Explained e;
  e.own.insert({{"COLUMNS", "80"}, {"PYTHONPATH", "/p"}});
  EXPECT_EQ(e.of("COLUMNS"), "80; environment of drun");
  e.question.has_terminal = true;
  EXPECT_EQ(e.of("COLUMNS"), "");
  e.request.compat_folder = "/compat";
  EXPECT_EQ(e.of("PYTHONPATH"), "/compat:/p; drun");
  EXPECT_EQ(e.of("HOROVOD_RANK"), "5; drun");
  EXPECT_EQ(e.of("HOROVOD_CONTROLLER"), "");
  e.request.real_horovod = true;
  EXPECT_EQ(e.of("HOROVOD_CONTROLLER"), "gloo; drun");
  EXPECT_EQ(e.of("HOROVOD_GLOO_RENDEZVOUS_ADDR"), "?; drun");
  EXPECT_EQ(e.of("HOROVOD_GLOO_RENDEZVOUS_PORT"), "?; drun");
  e.request.exports = {"DRUN_KEY"};
  EXPECT_EQ(e.of("DRUN_KEY"), "?; drun");
  EXPECT_EQ(e.of("DRUN_DATA_ADDRESS"), "?; drun");
}

TEST(EnvOrigins, SecretsAreKnownByNameOrByAPasswordInAnAddress) {
  for (const char* name : {"DRUN_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "wandb_api_key",
                           "PGPASSWORD", "GOOGLE_APPLICATION_CREDENTIALS"}) {
    EXPECT_TRUE(is_secret(name, "x")) << name;
  }
  for (const char* name : {"PATH", "NCCL_DEBUG", "KEYBOARD", "RANK"}) EXPECT_FALSE(is_secret(name, "x")) << name;
  EXPECT_TRUE(is_secret("PIP_INDEX_URL", "https://me:pw@host/simple"));
  EXPECT_FALSE(is_secret("PIP_INDEX_URL", "https://host/a@b:c"));
  EXPECT_FALSE(is_secret("PIP_INDEX_URL", "https://me@host/simple"));
}

}  // namespace
}  // namespace drun::launcher
