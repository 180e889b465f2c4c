#include "cli/horovodrun.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/options.h"

namespace drun::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Words = std::vector<std::string>;

const TextReader kNoFiles = [](const std::string& path) -> Result<std::string> {
  return fail(Errc::kIo, path, "no such file or directory");
};

// The arguments for drun behind `run --compat horovod --config none`.
Words translated(const Words& args) {
  auto out = translate_horovodrun(args, kNoFiles, UnnamedHosts::kBatchJob);
  EXPECT_TRUE(out) << out.error().message();
  if (!out) return {};
  EXPECT_THAT(Words(out->args.begin(), out->args.begin() + 5),
              ElementsAre("run", "--compat", "horovod", "--config", "none"));
  return Words(out->args.begin() + 5, out->args.end());
}

TEST(Horovodrun, TheCommandOfItsManualBecomesDruns) {
  EXPECT_THAT(
      translated({"-np", "2", "-H", "localhost:1,host1:1", "-p", "12345", "python", "pytorch_mnist.py", "-p", "x"}),
      ElementsAre("-np", "2", "-H", "localhost:1,host1:1", "-p", "12345", "--", "python", "pytorch_mnist.py", "-p",
                  "x"));
}

TEST(Horovodrun, OptionsThatMeanTheSameKeepTheirValues) {
  EXPECT_THAT(translated({"--num-proc=4", "--timeline-filename", "t.json", "--verbose", "--disable-cache",
                          "-prefix-timestamp", "--stall-check-warning-time-seconds", "9", "a"}),
              ElementsAre("-np", "4", "--timeline", "t.json", "-v", "--no-cache", "--timestamp-output",
                          "--stall-timeout", "9", "--", "a"));
  EXPECT_THAT(translated({"--tcp", "--no-stall-check", "a"}),
              ElementsAre("-x", "NCCL_IB_DISABLE=1", "--stall-timeout", "0", "--", "a"));
  EXPECT_THAT(translated({"-v"}), ElementsAre("--version"));
  EXPECT_THAT(translated({"-np", "1", "--", "-strange"}), ElementsAre("-np", "1", "--", "-strange"));
}

TEST(Horovodrun, WordsAreReadAsItsParserReadsThem) {
  EXPECT_THAT(translated({"-np", "2", "-Hlocalhost:2", "-p12345", "-i/root/key", "a"}),
              ElementsAre("-np", "2", "-H", "localhost:2", "-p", "12345", "-i", "/root/key", "--", "a"));
  EXPECT_THAT(translated({"-H=a:1", "-np=1", "a"}), ElementsAre("-H", "a:1", "-np", "1", "--", "a"));
  EXPECT_THAT(translated({"-np", "2", "-H", "a:1", "-np", "4", "--start-timeout", "9", "--hosts=b:4", "--start-timeout",
                          "8", "--verbose", "--verbose", "a"}),
              ElementsAre("-np", "4", "-H", "b:4", "--start-timeout", "8", "-v", "--", "a"))
      << "the last one counts";
}

TEST(Horovodrun, WithoutHostsTheRanksAreHere) {
  const auto args = [](const Words& typed, UnnamedHosts unnamed) {
    const auto out = translate_horovodrun(typed, kNoFiles, unnamed);
    return out ? Words(out->args.begin() + 5, out->args.end()) : Words{out.error().message()};
  };
  EXPECT_THAT(args({"-np", "4", "a"}, UnnamedHosts::kThisMachine),
              ElementsAre("-np", "4", "-H", "localhost:4", "--", "a"));
  EXPECT_THAT(args({"-np", "4", "a"}, UnnamedHosts::kBatchJob), ElementsAre("-np", "4", "--", "a"));
  EXPECT_THAT(args({"-np", "4", "-hostfile", "f", "a"}, UnnamedHosts::kThisMachine),
              ElementsAre("-np", "4", "--hostfile", "f", "--", "a"));
  EXPECT_THAT(args({"-np", "x", "a"}, UnnamedHosts::kThisMachine), ElementsAre("-np", "x", "--", "a"));
  EXPECT_THAT(args({"a"}, UnnamedHosts::kThisMachine), ElementsAre("--", "a"));
}

TEST(Horovodrun, WhatTunesHorovodIsIgnoredByName) {
  const auto out = translate_horovodrun({"--gloo", "--fusion-threshold-mb", "32", "--autotune", "-np", "1", "a"},
                                        kNoFiles, UnnamedHosts::kBatchJob);
  ASSERT_TRUE(out);
  EXPECT_THAT(out->ignored, ElementsAre("--gloo", "--fusion-threshold-mb", "--autotune"));
  EXPECT_THAT(Words(out->args.begin() + 5, out->args.end()), ElementsAre("-np", "1", "--", "a"));
  EXPECT_THAT(translate_horovodrun({"-np", "1", "a"}, kNoFiles, UnnamedHosts::kBatchJob)->ignored, IsEmpty());
}

TEST(Horovodrun, WhatTunesARealHorovodIsPassedToIt) {
  const auto out =
      translate_horovodrun({"--compat", "real-horovod", "--gloo", "--fusion-threshold-mb", "32", "--no-autotune",
                            "--timeline-filename=t.json", "--stall-check-warning-time-seconds", "9", "--no-stall-check",
                            "--log-without-timestamp", "--thread-affinity", "2", "-np", "1", "a"},
                           kNoFiles, UnnamedHosts::kBatchJob);
  ASSERT_TRUE(out) << out.error().message();
  EXPECT_THAT(out->args, ElementsAre("run", "--compat", "real-horovod", "--config", "none", "-x",
                                     "HOROVOD_FUSION_THRESHOLD=33554432", "-x", "HOROVOD_AUTOTUNE=0", "-x",
                                     "HOROVOD_TIMELINE=t.json", "-x", "HOROVOD_STALL_CHECK_TIME_SECONDS=9", "-x",
                                     "HOROVOD_STALL_CHECK_DISABLE=1", "-x", "HOROVOD_LOG_HIDE_TIME=1", "-x",
                                     "HOROVOD_THREAD_AFFINITY=2", "-np", "1", "--", "a"));
  EXPECT_THAT(out->ignored, IsEmpty());
  EXPECT_THAT(translated({"--compat=horovod", "-np", "1", "a"}), ElementsAre("-np", "1", "--", "a"));
}

TEST(Horovodrun, ElasticJobsAndTheUnknownAreRefused) {
  const auto refused = [](const Words& args) {
    const auto out = translate_horovodrun(args, kNoFiles, UnnamedHosts::kBatchJob);
    return out ? "" : out.error().message() + "; " + out.error().hint;
  };
  EXPECT_THAT(refused({"-np", "2", "--min-np", "1", "a"}), HasSubstr("horovodrun --min-np: drun can't do that"));
  EXPECT_THAT(refused({"--mpi-args", "-x A", "a"}), HasSubstr("horovodrun --mpi-args: drun can't do that"));
  EXPECT_THAT(refused({"--max-np"}), HasSubstr("horovodrun --max-np: its value is missing"));
  EXPECT_THAT(refused({"--host-discovery-script=x", "a"}), HasSubstr("ranks that it began with"));
  EXPECT_THAT(refused({"--config-file", "f", "a"}), HasSubstr("horovodrun --config-file: f: no such file"));
  EXPECT_THAT(refused({"--nosuch", "a"}), HasSubstr("horovodrun --nosuch: not an option of horovodrun"));
  EXPECT_THAT(refused({"-np"}), HasSubstr("horovodrun -np: its value is missing"));
  EXPECT_THAT(refused({"--thread-affinity", "2", "a"}), HasSubstr("--bind-to core"));
  EXPECT_THAT(refused({"--compat", "x", "a"}), HasSubstr("--compat: 'x' is neither horovod nor real-horovod"));
  EXPECT_THAT(refused({"--compat"}), HasSubstr("--compat: '' is neither"));
  EXPECT_THAT(refused({"-np", "2", "--compat", "real-horovod", "a"}), HasSubstr("it comes first"));
  EXPECT_THAT(refused({"--compat=real-horovod", "--mpi", "a"}), HasSubstr("Gloo controller"));
  EXPECT_THAT(refused({"--compat=real-horovod", "--min-np", "1", "a"}), HasSubstr("ranks that it began with"));
  EXPECT_THAT(refused({"--compat=real-horovod", "--fusion-threshold-mb", "1.5", "a"}), HasSubstr("not a number of MB"));
}

TEST(Horovodrun, TheCommandLineWinsOverTheFile) {
  const auto out = [](const std::string& text, const Words& args) {
    const auto read = [&text](const std::string&) -> Result<std::string> { return text; };
    return translate_horovodrun(args, read, UnnamedHosts::kBatchJob);
  };
  const auto behind = [](const Result<Horovodrun>& all) { return Words(all->args.begin() + 5, all->args.end()); };
  const std::string file =
      "timeline: {filename: a.json}\nstall_check: {enabled: false, warning_time_seconds: 9}\nx: 1\n";
  const auto from_file = out(file, {"--config-file", "f", "-np", "1", "b"});
  EXPECT_THAT(behind(from_file), ElementsAre("--timeline", "a.json", "--stall-timeout", "0", "-np", "1", "--", "b"));
  EXPECT_THAT(from_file->ignored, ElementsAre("x"));
  EXPECT_THAT(behind(out(file, {"--timeline-filename", "c", "--config-file=f", "--stall-check-warning-time-seconds",
                                "5", "b"})),
              ElementsAre("--timeline", "c", "--stall-timeout", "5", "--", "b"));
  const auto refused = out("library_options: {thread_affinity: 1}\n", {"--config-file", "f", "b"});
  EXPECT_EQ(refused.error().message(), "horovodrun f: library_options.thread_affinity: drun can't do that");
}

TEST(Horovodrun, ARealHorovodHasTheGlooController) {
  const auto error = [](const std::string& controller, Words args) {
    args.insert(args.begin(), {"--compat", "real-horovod", "--config-file", "f"});
    args.emplace_back("a");
    const auto read = [&](const std::string&) -> Result<std::string> { return "controller: " + controller + "\n"; };
    const auto out = translate_horovodrun(args, read, UnnamedHosts::kBatchJob);
    return out ? "" : out.error().message() + "; " + out.error().hint;
  };
  EXPECT_EQ(error("mpi", {}), "horovodrun f: controller: drun starts Horovod's Gloo controller; leave it out");
  EXPECT_EQ(error("gloo", {}), "");
  EXPECT_EQ(error("mpi", {"--gloo"}), "") << "the command line wins";
  EXPECT_THAT(error("gloo", {"--mpi"}), HasSubstr("horovodrun --mpi: "));
  EXPECT_THAT(error("gloo", {"--gloo", "--jsrun"}), HasSubstr("horovodrun --jsrun: "));
}

TEST(Horovodrun, TheFileOfARealHorovodBecomesItsVariables) {
  const auto read = [](const std::string&) -> Result<std::string> {
    return std::string(
        "autotune: {enabled: true}\ntimeline: {filename: t.json}\nlibrary_options: {thread_affinity: 1}\n");
  };
  const auto out = translate_horovodrun({"--compat", "real-horovod", "--no-autotune", "--config-file", "f", "a"}, read,
                                        UnnamedHosts::kBatchJob);
  ASSERT_TRUE(out) << out.error().message();
  EXPECT_THAT(Words(out->args.begin() + 5, out->args.end()),
              ElementsAre("-x", "HOROVOD_TIMELINE=t.json", "-x", "HOROVOD_THREAD_AFFINITY=1", "-x",
                          "HOROVOD_AUTOTUNE=0", "--", "a"));
}

}  // namespace
}  // namespace drun::cli
