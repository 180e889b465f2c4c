#include "check/baseline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/check/link_tables.h"

namespace drun::check {
namespace {

using ::testing::ElementsAre;
using testing::FakeNetwork;
using ::testing::HasSubstr;
using testing::heads;
using ::testing::IsEmpty;

const std::chrono::system_clock::time_point kThen{std::chrono::seconds(1'700'000'000)};

std::vector<std::string> names(int n) {
  std::vector<std::string> out;
  for (int i = 0; i < n; ++i) out.push_back("h" + std::to_string(i));
  return out;
}

Baseline normal(int n) { return make_baseline(names(n), FakeNetwork(n).measure(), kThen); }

TEST(Baseline, SurvivesItsFile) {
  const Baseline saved = normal(3);
  EXPECT_EQ(saved.saved, "2023-11-14T22:13:20Z");
  EXPECT_EQ(saved.links.size(), 6u);
  const auto read = parse_baseline(to_json(saved));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->saved, saved.saved);
  ASSERT_EQ(read->links.size(), saved.links.size());
  for (const auto& [pair, link] : saved.links) {
    EXPECT_NEAR(read->links.at(pair).bits_per_second, link.bits_per_second, 1);
    EXPECT_NEAR(read->links.at(pair).rtt_us, link.rtt_us, 0.1);
  }
}

TEST(Baseline, SaysWhatIsWrongWithAFile) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"", "not JSON"},
      {"{\"kind\": \"drun check", "not JSON"},
      {"[]", "no baseline"},
      {"{}", "no baseline"},
      {R"({"kind": "drun check baseline", "version": 2})", "version is 2, this drun reads version 1"},
      {R"({"kind": "drun check baseline", "version": "1"})", "version is \"1\""},
      {R"({"kind": "drun check baseline", "version": 1, "saved": 5, "links": []})", "'saved'"},
      {R"({"kind": "drun check baseline", "version": 1, "saved": "x", "links": {}})", "'links' is no list"},
      {R"({"kind": "drun check baseline", "version": 1, "saved": "x", "links": [1]})", "links[0] is no object"},
      {R"({"kind": "drun check baseline", "version": 1, "saved": "x", "links": [{"from": "a"}]})", "links[0] lacks"},
      {R"({"kind": "drun check baseline", "version": 1, "saved": "x",
           "links": [{"from": "a", "to": "b", "bits_per_second": -1}]})",
       "links[0]: 'bits_per_second'"},
      {R"({"kind": "drun check baseline", "version": 1, "saved": "x",
           "links": [{"from": "a", "to": "b", "round_trip_us": "5"}]})",
       "links[0]: 'round_trip_us'"},
  };
  for (const auto& [text, expected] : cases) {
    const auto parsed = parse_baseline(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Errc::kUsage);
    EXPECT_THAT(parsed.error().cause, HasSubstr(expected));
    EXPECT_THAT(parsed.error().hint, HasSubstr("--save-baseline"));
  }
}

TEST(Baseline, NoFindingIfAllIsAsItWas) {
  for (const int n : {2, 3, 8}) {
    EXPECT_THAT(heads(baseline_findings(names(n), FakeNetwork(n).measure(), normal(n))), IsEmpty()) << n;
  }
}

TEST(Baseline, NoFindingWhereEverythingScatters) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    FakeNetwork then(16), now(16);
    then.scatter = now.scatter = 2;
    then.seed = seed;
    now.seed = seed + 1000;
    const Baseline baseline = make_baseline(names(16), then.measure(), kThen);
    EXPECT_THAT(heads(baseline_findings(names(16), now.measure(), baseline)), IsEmpty()) << seed;
  }
}

TEST(Baseline, NamesTheHostThatHasBecomeSlower) {
  FakeNetwork now(5);
  now[3].sends = now[3].receives = 300e6;
  const auto findings = baseline_findings(names(5), now.measure(), normal(5));
  EXPECT_THAT(heads(findings), ElementsAre("baseline-slower h3"));
  EXPECT_EQ(findings[0].text, "moves 306 Mb/s, it was 960 Mb/s on 2023-11-14T22:13:20Z");
  EXPECT_THAT(pairs_below_baseline(names(5), now.measure().links, normal(5)),
              ElementsAre(std::pair(0, 3), std::pair(1, 3), std::pair(2, 3), std::pair(3, 4)));
}

TEST(Baseline, NamesThePairOrAll) {
  FakeNetwork pair(5), all(5), two(2);
  pair.special = [](int from, int to, netdetect::Rate& rate) {
    if (from + to == 3 && from * to == 2) rate.bits_per_second /= 10;
  };
  EXPECT_THAT(heads(baseline_findings(names(5), pair.measure(), normal(5))), ElementsAre("baseline-slower h1 to h2"));
  for (auto& host : all.hosts) host.sends = host.receives = 94e6;
  EXPECT_THAT(heads(baseline_findings(names(5), all.measure(), normal(5))), ElementsAre("baseline-slower all hosts"));
  for (auto& host : two.hosts) host.sends = host.receives = 94e6;
  EXPECT_THAT(heads(baseline_findings(names(2), two.measure(), normal(2))), ElementsAre("baseline-slower h0 to h1"));
}

TEST(Baseline, NamesTheHostThatHasBecomeFarther) {
  FakeNetwork now(5);
  now[3].extra_us = 1000;
  EXPECT_THAT(heads(baseline_findings(names(5), now.measure(), normal(5))), ElementsAre("baseline-latency h3"));
}

TEST(Baseline, HostsOfOnlyOneAreNotes) {
  const auto findings = baseline_findings({"h0", "h1", "new"}, FakeNetwork(3).measure(), normal(4));
  EXPECT_THAT(heads(findings), ElementsAre("baseline-hosts new", "baseline-hosts h2 and h3"));
  for (const Finding& finding : findings) EXPECT_EQ(finding.severity, Severity::kNote);
  EXPECT_THAT(findings[0].hosts, ElementsAre(2));
  EXPECT_THAT(findings[1].hosts, IsEmpty());
}

class BaselineFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "drun-baseline-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(BaselineFile, IsWrittenWholeAndReadBack) {
  const std::string path = (folder_ / "normal.json").string();
  ASSERT_TRUE(write_baseline(path, normal(3)));
  ASSERT_TRUE(write_baseline(path, normal(4)));  // replaced
  const auto read = read_baseline(path);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->links.size(), 12u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);  // no temporary file is left
}

TEST_F(BaselineFile, ErrorsNameThePathAndTheReason) {
  const std::string missing = (folder_ / "none.json").string();
  const auto read = read_baseline(missing);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Errc::kUsage);
  EXPECT_EQ(read.error().message(), missing + ": No such file or directory");

  EXPECT_EQ(read_baseline(folder_.string()).error().message(), folder_.string() + ": it is no regular file");

  const std::string broken = (folder_ / "broken.json").string();
  std::ofstream(broken) << "{";
  EXPECT_THAT(read_baseline(broken).error().message(), HasSubstr(broken + ": it is not JSON"));

  const std::string nowhere = (folder_ / "no" / "folder.json").string();
  const auto written = write_baseline(nowhere, normal(2));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Errc::kUsage);
  EXPECT_EQ(written.error().message(), nowhere + ": no such file or directory");

  ASSERT_TRUE(std::filesystem::create_directory(folder_ / "folder"));
  EXPECT_FALSE(write_baseline((folder_ / "folder").string(), normal(2)));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 2);  // broken.json, folder
}

}  // namespace
}  // namespace drun::check
