#include "check/host_facts_json.h"

#include <gtest/gtest.h>

namespace drun::check {
namespace {

TEST(HostFactsJson, WhatIsNotKnownIsLeftOut) {
  const auto json = to_json(control::HostFacts{});
  EXPECT_FALSE(json.contains("memory_total_mib"));
  EXPECT_FALSE(json.contains("command"));
  EXPECT_FALSE(json.at("limits").contains("open_files"));
  EXPECT_EQ(json.at("nvidia_smi").at("found"), false);
  EXPECT_TRUE(json.at("gpus").is_array());
}

TEST(HostFactsJson, UnitsAreInTheNames) {
  control::HostFacts facts;
  facts.versions["driver"] = "535.104.05";
  facts.memory_total_mib = 1024;
  facts.memlock_bytes = control::HostFacts::kUnlimited;
  facts.open_files = 1024;
  facts.gpus.emplace_back();
  facts.gpus[0].memory_used_mib = 4;
  facts.gpus[0].processes.emplace_back();
  facts.gpus[0].processes[0].pid = 12;
  facts.rdma.emplace_back();
  facts.rdma[0].rate_mbps = 200000;
  facts.nics.emplace_back();
  facts.nics[0].speed_mbps = 1000;
  facts.bonds.emplace_back();
  facts.bonds[0].slaves.emplace_back();
  facts.bonds[0].slaves[0].name = "eth0";
  facts.xids.emplace_back();
  facts.xids[0].age_s = 5;
  facts.disks.emplace_back();
  facts.disks[0].free_mib = 7;
  const auto json = to_json(facts);
  EXPECT_EQ(json.at("versions").at("driver"), "535.104.05");
  EXPECT_EQ(json.at("memory_total_mib"), 1024);
  EXPECT_EQ(json.at("limits").at("memlock_bytes"), "unlimited");
  EXPECT_EQ(json.at("limits").at("open_files"), 1024);
  EXPECT_EQ(json.at("gpus").at(0).at("memory_used_mib"), 4);
  EXPECT_EQ(json.at("gpus").at(0).at("processes").at(0).at("pid"), 12);
  EXPECT_EQ(json.at("rdma").at(0).at("rate_mbps"), 200000);
  EXPECT_EQ(json.at("nics").at(0).at("speed_mbps"), 1000);
  EXPECT_EQ(json.at("bonds").at(0).at("slaves").at(0).at("name"), "eth0");
  EXPECT_EQ(json.at("xids").at(0).at("age_s"), 5);
  EXPECT_EQ(json.at("disks").at(0).at("free_mib"), 7);
}

}  // namespace
}  // namespace drun::check
