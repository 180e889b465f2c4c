// Sends an id of the real ncclGetUniqueId, which needs no GPU, through the real server.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "server_thread.h"

namespace drun::rendezvous {
namespace {

using namespace std::chrono_literals;

void* load_nccl() {
  std::vector<std::string> places;
  if (const char* named = std::getenv("DRUN_NCCL_LIB")) places.push_back(named);
  places.push_back("libnccl.so.2");
  places.push_back("/usr/local/cuda/lib64/libnccl.so.2");
  places.push_back("/usr/local/cuda/lib/libnccl.so.2");
  for (const auto& place : places) {
    if (void* library = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

struct UniqueId {
  char internal[kNcclIdBytes];
};

TEST(NcclId, RealOneReachesEveryRankAndIsNewForEachAttempt) {
  void* library = load_nccl();
  if (library == nullptr) GTEST_SKIP() << "no libnccl.so.2 on this machine: " << ::dlerror();
  using GetUniqueId = int (*)(UniqueId*);
  const auto get_unique_id = reinterpret_cast<GetUniqueId>(::dlsym(library, "ncclGetUniqueId"));
  ASSERT_NE(get_unique_id, nullptr);
  // NCCL's bootstrap uses loopback instead of searching the machine's network.
  ::setenv("NCCL_SOCKET_IFNAME", "lo", 0);
  constexpr int kRanks = 4, kAttempts = 3;
  ServerThread server(kRanks);
  std::mutex mutex;
  std::vector<std::set<std::string>> ids(kAttempts);
  in_ranks(kRanks, [&](int rank) {
    auto client = server.join(rank);
    ASSERT_TRUE(client) << client.error().message();
    ASSERT_TRUE((*client)->barrier("init", 30s));  // as in drun_init: no rank leaves before all are there
    const auto make = [&]() -> Result<std::string> {
      UniqueId id{};
      if (const int rc = get_unique_id(&id); rc != 0) return fail(Errc::kIo, "ncclGetUniqueId: " + std::to_string(rc));
      return std::string(id.internal, sizeof id.internal);
    };
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const auto id = (*client)->nccl_id("world", attempt, 0, make, 30s);
      ASSERT_TRUE(id) << id.error().message();
      EXPECT_EQ(id->size(), kNcclIdBytes);
      const std::lock_guard<std::mutex> lock(mutex);
      ids[static_cast<std::size_t>(attempt)].insert(*id);
    }
  });
  std::set<std::string> all;
  for (const auto& of_attempt : ids) {
    EXPECT_EQ(of_attempt.size(), 1u);
    all.insert(of_attempt.begin(), of_attempt.end());
  }
  EXPECT_EQ(all.size(), static_cast<std::size_t>(kAttempts));
  EXPECT_EQ(all.count(std::string(kNcclIdBytes, '\0')), 0u);
}

}  // namespace
}  // namespace drun::rendezvous
