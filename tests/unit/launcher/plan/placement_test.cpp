#include "launcher/plan/placement.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "launcher/plan/hostfile.h"
#include "launcher/plan/hostlist.h"

namespace drun::launcher {
namespace {

std::vector<Host> hosts(const std::string& list) { return parse_hostlist(list).value(); }

// Returns a line "host local/size cross/size" per rank.
std::string text(const Placement& p) {
  std::string out;
  for (const auto& r : p.ranks) {
    out += std::to_string(r.host) + " " + std::to_string(r.local_rank) + "/" + std::to_string(r.local_size) + " " +
           std::to_string(r.cross_rank) + "/" + std::to_string(r.cross_size) + "\n";
  }
  return out;
}

TEST(Placement, PacksHostByHost) {
  const auto p = place(hosts("a:2,b:2"), 4);
  ASSERT_TRUE(p);
  EXPECT_EQ(p->size, 4);
  EXPECT_EQ(text(*p), "0 0/2 0/2\n0 1/2 0/2\n1 0/2 1/2\n1 1/2 1/2\n");
  EXPECT_EQ(p->host_indices, (std::vector<int>{0, 1}));
  EXPECT_EQ(p->local_sizes, (std::vector<int>{2, 2}));
}

std::vector<int> slots_for(const std::vector<Host>& list, int np) {
  std::vector<int> out;
  for (const auto& host : with_slots_for(list, np)) out.push_back(host.slots);
  return out;
}

TEST(Oversubscription, AddsEachHostsSlotsAgainUpToItsMaximum) {
  auto list = hosts("a:2,b:1,c:1");
  list[1].max_slots = 2;
  list[2].max_slots = 1;
  EXPECT_EQ(slots_for(list, 4), (std::vector<int>{2, 1, 1}));
  EXPECT_EQ(slots_for(list, 6), (std::vector<int>{4, 1, 1}));
  EXPECT_EQ(slots_for(list, 9), (std::vector<int>{6, 2, 1}));
}

TEST(Oversubscription, EndsWhereNoHostHasRoom) {
  auto list = hosts("a:2,b:5");
  list[0].max_slots = 2;
  list[1].max_slots = 3;  // of its five slots, three count
  EXPECT_EQ(slots_for(list, 20), (std::vector<int>{2, 5}));
}

TEST(Placement, AnotherHostCanLead) {
  auto list = hosts("a:2,b:1,c:3,d:1");
  list[2].gpus = {"5", "6", "7"};
  const auto before = place(list, 7);
  ASSERT_TRUE(before);
  const Placement p = led_by(*before, 2);
  EXPECT_EQ(text(p), "0 0/3 0/4\n0 1/3 0/2\n0 2/3 0/1\n1 0/2 1/4\n1 1/2 1/2\n2 0/1 2/4\n3 0/1 3/4\n");
  EXPECT_EQ(p.host_indices, (std::vector<int>{2, 0, 1, 3}));
  EXPECT_EQ(p.local_sizes, (std::vector<int>{3, 2, 1, 1}));
  EXPECT_EQ(p.size, 7);
  for (int rank = 0; rank < 7; ++rank) {
    EXPECT_EQ(p.ranks[static_cast<std::size_t>(rank)].rank, rank);
    EXPECT_EQ(p.ranks[static_cast<std::size_t>(rank)].gpu, rank < 3 ? std::to_string(rank + 5) : "");
  }
  EXPECT_EQ(text(led_by(*before, 0)), text(*before));
}

TEST(Placement, GivesEachRankItsGpu) {
  const auto p = place(hosts("a:gpus=0,2,b:2,c:gpus=5"), 0);
  ASSERT_TRUE(p);
  std::vector<std::string> gpus;
  for (const auto& r : p->ranks) gpus.push_back(r.gpu);
  EXPECT_EQ(gpus, (std::vector<std::string>{"0", "2", "", "", "5"}));
  auto list = hosts("a:gpus=0,2");
  list[0].slots = 3;  // as if the host were listed again without GPUs
  const auto refused = place(list, 0);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("3 slots for 2 GPUs"), std::string::npos) << refused.error().message();
}

TEST(Placement, RefusesAGpuThatTwoItemsGive) {
  const auto refused = place(add_slots(hosts("a:gpus=0,1,b:2,a:gpus=2,1")), 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(), "a: GPU 1 is given twice");
  EXPECT_TRUE(place(add_slots(hosts("a:gpus=0,1,b:gpus=0,1,a:gpus=2,3")), 0));
}

TEST(Placement, CountsCrossRanksOnUnequalHosts) {
  const auto p = place(hosts("a:1,b:3,c:2"), 0);
  ASSERT_TRUE(p);
  EXPECT_EQ(text(*p),
            "0 0/1 0/3\n"
            "1 0/3 1/3\n1 1/3 0/2\n1 2/3 0/1\n"
            "2 0/2 2/3\n2 1/2 1/2\n");
}

TEST(Placement, StartsExactlyNpWhenThereAreMoreSlots) {
  const auto one_host = place(hosts("localhost:4"), 2);
  ASSERT_TRUE(one_host);
  EXPECT_EQ(one_host->size, 2);
  EXPECT_EQ(text(*one_host), "0 0/2 0/1\n0 1/2 0/1\n");

  const auto partly = place(hosts("a:2,b:4"), 3);
  ASSERT_TRUE(partly);
  EXPECT_EQ(text(*partly), "0 0/2 0/2\n0 1/2 0/1\n1 0/1 1/2\n");
}

TEST(Placement, LeavesOutHostsWithoutARank) {
  auto list = hosts("a:2,b:2,c:2");
  const auto p = place(list, 2);
  ASSERT_TRUE(p);
  EXPECT_EQ(p->host_indices, (std::vector<int>{0}));
  list[0].slots = 0;
  const auto later = place(list, 3);
  ASSERT_TRUE(later);
  EXPECT_EQ(later->host_indices, (std::vector<int>{1, 2}));
  EXPECT_EQ(later->ranks[0].host, 0);
  EXPECT_EQ(later->ranks[2].host, 1);
}

TEST(Placement, NpZeroTakesAllSlots) {
  EXPECT_EQ(place(hosts("a:8,b:8"), 0)->size, 16);
  EXPECT_EQ(place(hosts("a"), 0)->size, 1);
}

TEST(Placement, SaysHowManySlotsThereAreAndWhatToType) {
  const auto p = place(hosts("a:2,root@b:2,[fd00::2]:2"), 8);
  ASSERT_FALSE(p);
  EXPECT_EQ(p.error().code, Errc::kUsage);
  EXPECT_EQ(p.error().message(), "-np 8: only 6 slots on 3 hosts");
  EXPECT_EQ(p.error().hint, "-np 6, or -H a:3,root@b:3,[fd00::2]:2");
  EXPECT_EQ(place(hosts("a"), 2).error().message(), "-np 2: only 1 slot on 1 host");
  EXPECT_EQ(place(hosts("a"), 2).error().hint, "-np 1, or -H a:2");
  EXPECT_EQ(place(hosts("n[1-100]"), 250).error().hint, "-np 100, or at least 3 slots on every host");
}

TEST(Placement, TheHintsListIsEnough) {
  const auto too_few = place(hosts("a:1,b:5,c:2"), 17);
  ASSERT_FALSE(too_few);
  const std::string& hint = too_few.error().hint;
  const auto again = place(hosts(hint.substr(hint.find("-H ") + 3)), 17);
  ASSERT_TRUE(again) << hint;
  EXPECT_EQ(again->size, 17);
}

TEST(Placement, PointsAtTheHostfile) {
  const auto p = place(parse_hostfile("\na slots=2\nb slots=2\n", "hosts.txt").value(), 8);
  ASSERT_FALSE(p);
  EXPECT_EQ(p.error().hint, "-np 4, or more slots= at hosts.txt:2:1");
}

TEST(Placement, KeepsToTheMaximumOfAHost) {
  const auto list = add_slots(parse_hostfile("a slots=2 max_slots=3\na slots=2\n", "f").value());
  EXPECT_EQ(place(list, 0)->size, 3);
  EXPECT_EQ(place(list, 4).error().message(), "-np 4: only 3 slots on 1 host");
  const auto more = add_slots(parse_hostfile("a slots=2 max_slots=3\na slots=2\nb slots=2\n", "f").value());
  EXPECT_EQ(place(more, 5)->local_sizes, (std::vector<int>{3, 2}));
  // max_slots is a bound and adds no slots.
  EXPECT_EQ(place(parse_hostfile("a slots=2 max_slots=8\n", "f").value(), 0)->size, 2);
}

TEST(Placement, RefusesNonsense) {
  EXPECT_EQ(place(hosts("a:2"), -1).error().message(), "-np -1: the number of workers must be at least 1");
  EXPECT_EQ(place({}, 2).error().code, Errc::kUsage);
  Host none;
  none.name = "a";
  none.slots = 0;
  EXPECT_FALSE(place({none}, 0));
  EXPECT_FALSE(place({none}, 1));
  none.slots = -5;
  EXPECT_FALSE(place({none, none}, 0));
  Host huge = none;
  huge.slots = 2147483647;
  EXPECT_FALSE(place({huge, huge, huge}, 0));
  EXPECT_FALSE(place({huge}, 2147483647));
}

TEST(Placement, HoldsItsInvariantsOnManyShapes) {
  // Ranks of one host are contiguous and count from 0; those of one local rank count the hosts in order.
  for (int seed = 1; seed < 200; ++seed) {
    std::vector<Host> list(static_cast<std::size_t>(seed % 7 + 1));
    int total = 0;
    for (std::size_t i = 0; i < list.size(); ++i) {
      list[i].name = "h" + std::to_string(i);
      list[i].slots = (seed * 31 + static_cast<int>(i) * 17) % 5;
      total += list[i].slots;
    }
    for (int np = 1; np <= total; ++np) {
      const auto p = place(list, np);
      ASSERT_TRUE(p);
      ASSERT_EQ(p->ranks.size(), static_cast<std::size_t>(np));
      ASSERT_EQ(p->host_indices.size(), p->local_sizes.size());
      int previous_host = -1, expected_local = 0;
      for (int rank = 0; rank < np; ++rank) {
        const RankPlace& r = p->ranks[static_cast<std::size_t>(rank)];
        if (r.host != previous_host) {
          ASSERT_EQ(r.host, previous_host + 1);
          expected_local = 0;
          previous_host = r.host;
        }
        ASSERT_EQ(r.rank, rank);
        ASSERT_EQ(r.local_rank, expected_local++);
        ASSERT_EQ(r.local_size, p->local_sizes[static_cast<std::size_t>(r.host)]);
        const int listed = p->host_indices[static_cast<std::size_t>(r.host)];
        ASSERT_LE(r.local_size, list[static_cast<std::size_t>(listed)].slots);
        int before = 0, all = 0;
        for (const RankPlace& other : p->ranks) {
          if (other.local_rank != r.local_rank) continue;
          ++all;
          before += other.host < r.host ? 1 : 0;
        }
        ASSERT_EQ(r.cross_rank, before);
        ASSERT_EQ(r.cross_size, all);
      }
      ASSERT_EQ(static_cast<std::size_t>(previous_host) + 1, p->host_indices.size());
    }
  }
}

TEST(Placement, PlacesEightyThousandRanks) {
  const auto p = place(hosts("h[0-9999]:8"), 0);
  ASSERT_TRUE(p);
  EXPECT_EQ(p->size, 80000);
  EXPECT_EQ(p->ranks.back().cross_rank, 9999);
  EXPECT_EQ(p->ranks.back().cross_size, 10000);
}

TEST(Placement, TooFewSlotsOfASchedulersJobAreNamed) {
  auto list = hosts("a,b");
  for (auto& host : list) {
    host.where = "SLURM_JOB_NODELIST";
    host.job = "Slurm job 4";
  }
  const auto p = place(list, 4);
  ASSERT_FALSE(p);
  EXPECT_EQ(p.error().message(), "-np 4: only 2 slots on 2 hosts of Slurm job 4");
  EXPECT_EQ(p.error().hint, "-np 2, or -H a:2,b:2");
}

}  // namespace
}  // namespace drun::launcher
