#include "cli/horovodrun_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;

// "KEY OPTION VALUE" of each setting; the error instead.
Words settings(std::string_view text) {
  const auto found = parse_horovodrun_file(text, "f.yaml");
  if (!found) return {found.error().message()};
  Words out;
  for (const auto& [key, option, value] : *found) out.push_back(key + " " + option + " " + value);
  return out;
}

TEST(HorovodrunFile, KeysAreOptions) {
  EXPECT_THAT(settings("controller: Gloo\n"
                       "params:\n  cycle_time_ms: 3.5\n  hierarchical_allreduce: yes\n"
                       "timeline: {filename: 'a b.json', mark_cycles: false}\n"
                       "stall_check:\n  enabled: false\n  warning_time_seconds: 120\n"),
              ElementsAre("controller --gloo ", "params.cycle_time_ms --cycle-time-ms 3.5",
                          "params.hierarchical_allreduce --hierarchical-allreduce ",
                          "timeline.filename --timeline-filename a b.json",
                          "timeline.mark_cycles --no-timeline-mark-cycles ", "stall_check.enabled --no-stall-check ",
                          "stall_check.warning_time_seconds --stall-check-warning-time-seconds 120"));
}

TEST(HorovodrunFile, UnknownKeysHaveNoOptionAndEmptyOnesAreLeftOut) {
  EXPECT_THAT(settings("verbose: 1\nlogging:\n  hide_timestamp: true\n  level:\nparams: ~\n"),
              ElementsAre("verbose  1", "logging.hide_timestamp  true"));
  EXPECT_THAT(settings(""), IsEmpty());
  EXPECT_THAT(settings("# nothing\n---\n"), IsEmpty());
}

TEST(HorovodrunFile, TheLastOfTwoCounts) {
  EXPECT_THAT(settings("logging: {level: INFO}\nlogging: {level: DEBUG}\n"),
              ElementsAre("logging.level --log-level DEBUG"));
}

TEST(HorovodrunFile, FaultsNameTheLine) {
  EXPECT_THAT(settings("a: 1\n- b\n"), ElementsAre("f.yaml:2: did not find expected key"));
  EXPECT_THAT(settings("params:\n  cycle_time_ms: [1]\n"),
              ElementsAre("f.yaml:2: params.cycle_time_ms: one value was expected"));
  EXPECT_THAT(settings("params: {cycle_time_ms: {a: 1}}\n"),
              ElementsAre("f.yaml:1: params.cycle_time_ms: one value was expected"));
  EXPECT_THAT(settings("stall_check:\n  enabled: 2\n"),
              ElementsAre("f.yaml:2: stall_check.enabled: '2' is neither true nor false"));
  EXPECT_THAT(settings("controller: jsrun\n"), ElementsAre("f.yaml:1: controller: 'jsrun' is neither gloo nor mpi"));
  EXPECT_THAT(settings("just text\n"), ElementsAre("f.yaml:1: a table was expected: `timeline:`, `params:`"));
  EXPECT_THAT(settings("a: &x 1\nb: *x\n"), ElementsAre("f.yaml:2: b: one value was expected"));
  EXPECT_THAT(settings("a: 1\n---\nb: 1\n"), ElementsAre("f.yaml:2: a second document"));
  EXPECT_THAT(settings("[a]: 1\n"), ElementsAre("f.yaml:1: a key was expected"));
  EXPECT_THAT(settings("a: \"\x01\"\n"), ElementsAre("f.yaml:1: control characters are not allowed"));
}

TEST(HorovodrunFile, DeepNestingIsAFaultAndNoCrash) {
  EXPECT_EQ(settings("a: " + std::string(60000, '[')).size(), 1U);
  EXPECT_EQ(settings(std::string(60000, '{')).size(), 1U);
}

}  // namespace
}  // namespace drun::cli
