#include "launcher/network/probe_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/unit/netdetect/hosts.h"

namespace drun::launcher {
namespace {

using netdetect::testing::host;
using netdetect::testing::nic;
using std::chrono::minutes;
using std::chrono::seconds;

const ProbeCache::Time kNow{seconds(1700000000)};
const std::string kKey(32, 'a');

std::vector<netdetect::HostInterfaces> two_hosts() {
  return {host("h0", {nic("eth0", {"10.0.0.1/24"}, 1000), nic("eth1", {"10.1.0.1/24"})}),
          host("h1", {nic("eth0", {"10.0.0.2/24"}, 1000)})};
}

std::string key_of(const std::vector<netdetect::HostInterfaces>& hosts, const std::vector<std::string>& wanted = {},
                   int head = 0) {
  const auto candidates = netdetect::find_candidates(hosts, wanted);
  EXPECT_TRUE(candidates);
  return probe_key(hosts, *candidates, head);
}

TEST(ProbeKey, IsTheSameForTheSame) { EXPECT_EQ(key_of(two_hosts()), key_of(two_hosts())); }

TEST(ProbeKey, IsAFileName) {
  EXPECT_EQ(key_of(two_hosts()).size(), 32U);
  EXPECT_EQ(key_of(two_hosts()).find_first_not_of("0123456789abcdef"), std::string::npos);
}

struct Change {
  const char* name;
  void (*make)(std::vector<netdetect::HostInterfaces>& hosts);
};

class KeyChange : public ::testing::TestWithParam<Change> {};

TEST_P(KeyChange, MakesAnotherKey) {
  auto hosts = two_hosts();
  GetParam().make(hosts);
  EXPECT_NE(key_of(hosts), key_of(two_hosts()));
}

using Hosts = std::vector<netdetect::HostInterfaces>;
INSTANTIATE_TEST_SUITE_P(
    Of, KeyChange,
    ::testing::Values(Change{"Name", [](Hosts& h) { h[1].host = "h2"; }},
                      Change{"BootOrNamespace", [](Hosts& h) { h[1].net_namespace = "after a reboot"; }},
                      Change{"Address", [](Hosts& h) { h[1].interfaces[1] = nic("eth0", {"10.0.0.3/24"}, 1000); }},
                      Change{"Prefix", [](Hosts& h) { h[1].interfaces[1] = nic("eth0", {"10.0.0.2/16"}, 1000); }},
                      Change{"Speed", [](Hosts& h) { h[1].interfaces[1].speed_mbps = 10; }},
                      Change{"Carrier", [](Hosts& h) { h[0].interfaces[2].running = false; }},
                      Change{"Interface", [](Hosts& h) { h[0].interfaces.pop_back(); }},
                      Change{"Order", [](Hosts& h) { std::swap(h[0], h[1]); }}),
    [](const auto& tested) { return tested.param.name; });

TEST(ProbeKey, DependsOnTheOptionAndTheHead) {
  EXPECT_NE(key_of(two_hosts(), {"eth0"}), key_of(two_hosts()));
  EXPECT_NE(key_of(two_hosts(), {}, -1), key_of(two_hosts()));
}

TEST(ProbeKey, IgnoresWhatIsNotTried) {
  auto hosts = two_hosts();
  hosts[0].interfaces.push_back(nic("veth12345", {}));  // as of a container that has just started
  EXPECT_EQ(key_of(hosts), key_of(two_hosts()));
}

class Cache : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "probe-cache-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string directory() const { return root_ + "/a/drun"; }
  std::string file() const { return directory() + "/probe-" + kKey; }
  ProbeCache cache() const { return ProbeCache(directory()); }

  static std::vector<netdetect::AttemptResult> results() {
    auto good = netdetect::testing::result({0, 2}, netdetect::ProbeOutcome::kReached, 120);
    good.result.source = "10.0.0.1";
    auto bad = netdetect::testing::result({1, 1}, netdetect::ProbeOutcome::kUnreachable);
    bad.result.detail = "No route to host";
    return {good, bad};
  }

  std::string content() const {
    std::ifstream in(file(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& bytes) const { std::ofstream(file(), std::ios::binary) << bytes; }

  std::string root_;
};

TEST_F(Cache, ReturnsWhatWasStored) {
  cache().store(kKey, results(), kNow);
  const auto entry = cache().load(kKey, 2, 3, kNow + minutes(5));
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->age, minutes(5));
  ASSERT_EQ(entry->results.size(), 2U);
  EXPECT_EQ(entry->results[0].attempt.from, 0);
  EXPECT_EQ(entry->results[0].attempt.candidate, 2);
  EXPECT_EQ(entry->results[0].result.outcome, netdetect::ProbeOutcome::kReached);
  EXPECT_EQ(entry->results[0].result.micros, 120U);
  EXPECT_EQ(entry->results[0].result.source, "10.0.0.1");
  EXPECT_EQ(entry->results[1].result.detail, "No route to host");
}

TEST_F(Cache, KeepsWhatWasMeasured) {
  cache().store(kKey, results(), kNow);
  auto entry = cache().load(kKey, 2, 3, kNow);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->measured_mbps, std::vector<int>(3, 0));
  cache().store(kKey, results(), kNow, {94, 0, 9400});
  entry = cache().load(kKey, 2, 3, kNow);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->measured_mbps, (std::vector<int>{94, 0, 9400}));
  EXPECT_FALSE(cache().load(kKey, 2, 4, kNow));
}

TEST_F(Cache, IsTheUsersOwn) {
  cache().store(kKey, results(), kNow);
  struct stat info {};
  ASSERT_EQ(::stat(file().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  ASSERT_EQ(::stat(directory().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory()), {}), 1);  // no temporary file is left
}

TEST_F(Cache, HasNothingOnceItIsTooOldOrFromTheFuture) {
  cache().store(kKey, results(), kNow);
  EXPECT_TRUE(cache().load(kKey, 2, 3, kNow + ProbeCache::kMaxAge));
  EXPECT_FALSE(cache().load(kKey, 2, 3, kNow + ProbeCache::kMaxAge + seconds(1)));
  EXPECT_FALSE(cache().load(kKey, 2, 3, kNow - seconds(1)));
}

// The time is in the first bytes behind the first line, the checksum in the last ones.
TEST_F(Cache, HasNothingFromAnImpossibleTime) {
  constexpr std::size_t kFirstLine = 21, kChecksum = 16;
  for (const char first : {'\x80', '\x7f'}) {
    cache().store(kKey, results(), kNow);
    std::string bytes = content();
    bytes.replace(kFirstLine, 8, std::string(1, first) + std::string(7, '\0'));
    bytes.resize(bytes.size() - kChecksum);
    unsigned char checksum[kChecksum];
    crypto_generichash(checksum, sizeof checksum, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                       nullptr, 0);
    write(bytes + std::string(reinterpret_cast<const char*>(checksum), sizeof checksum));
    EXPECT_FALSE(cache().load(kKey, 2, 3, kNow));
  }
}

TEST_F(Cache, HasNothingUnderAnotherKey) {
  cache().store(kKey, results(), kNow);
  const std::string other(32, 'b');
  std::filesystem::copy_file(file(), directory() + "/probe-" + other);
  EXPECT_FALSE(cache().load(other, 2, 3, kNow));
  EXPECT_FALSE(cache().load(std::string(32, 'c'), 2, 3, kNow));
}

TEST_F(Cache, HasNothingThatDoesNotFitTheHosts) {
  cache().store(kKey, results(), kNow);
  EXPECT_FALSE(cache().load(kKey, 1, 3, kNow));
  EXPECT_FALSE(cache().load(kKey, 2, 2, kNow));
}

TEST_F(Cache, HasNothingInABrokenFile) {
  cache().store(kKey, results(), kNow);
  const std::string good = content();
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    write(bad);
    EXPECT_FALSE(cache().load(kKey, 2, 3, kNow)) << "byte " << i;
    write(good.substr(0, i));
    EXPECT_FALSE(cache().load(kKey, 2, 3, kNow)) << "cut at " << i;
  }
  write(good + "x");
  EXPECT_FALSE(cache().load(kKey, 2, 3, kNow));
  write(good);
  EXPECT_TRUE(cache().load(kKey, 2, 3, kNow));
}

TEST_F(Cache, TrustsNoFileThatOthersMayWriteAndNoLink) {
  cache().store(kKey, results(), kNow);
  ASSERT_EQ(::chmod(file().c_str(), 0620), 0);
  EXPECT_FALSE(cache().load(kKey, 2, 3, kNow));
  ASSERT_EQ(::chmod(file().c_str(), 0600), 0);
  std::filesystem::rename(file(), root_ + "/elsewhere");
  std::filesystem::create_symlink(root_ + "/elsewhere", file());
  EXPECT_FALSE(cache().load(kKey, 2, 3, kNow));
}

TEST_F(Cache, DoesNotWaitForAPipe) {
  std::filesystem::create_directories(directory());
  ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
  EXPECT_FALSE(cache().load(kKey, 2, 3, kNow));
}

TEST_F(Cache, DropsAnEntry) {
  cache().drop(kKey);
  cache().store(kKey, results(), kNow);
  cache().drop(kKey);
  EXPECT_FALSE(cache().load(kKey, 2, 3, kNow));
}

TEST_F(Cache, KeepsTheNewestEntries) {
  const auto name = [](std::size_t i) { return std::string(30, '0') + std::to_string(10 + i); };
  for (std::size_t i = 0; i < ProbeCache::kMaxEntries + 5; ++i) {
    cache().store(name(i), results(), kNow);
    const std::filesystem::path path = directory() + "/probe-" + name(i);
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - minutes(60 - i));
    if (i > 0) continue;
    std::ofstream(directory() + "/agent-0") << "older than all entries";
    std::filesystem::last_write_time(directory() + "/agent-0", std::filesystem::last_write_time(path) - minutes(1));
  }
  std::size_t n = 0;
  for (std::size_t i = 0; i < ProbeCache::kMaxEntries + 5; ++i) n += cache().load(name(i), 2, 3, kNow) ? 1 : 0;
  EXPECT_EQ(n, ProbeCache::kMaxEntries);
  EXPECT_FALSE(cache().load(name(0), 2, 3, kNow));
  EXPECT_TRUE(cache().load(name(ProbeCache::kMaxEntries + 4), 2, 3, kNow));
  EXPECT_TRUE(std::filesystem::exists(directory() + "/agent-0")) << "agents are in the same directory";
}

TEST_F(Cache, DoesNothingWithoutADirectoryOrWhereItCantWrite) {
  const ProbeCache none("");
  none.store(kKey, results(), kNow);
  EXPECT_FALSE(none.load(kKey, 2, 3, kNow));
  none.drop(kKey);
  std::ofstream(root_ + "/file") << "x";
  const ProbeCache below_a_file(root_ + "/file/drun");
  below_a_file.store(kKey, results(), kNow);
  EXPECT_FALSE(below_a_file.load(kKey, 2, 3, kNow));
}

}  // namespace
}  // namespace drun::launcher
