#include "agent/guard.h"

#include <gtest/gtest.h>

namespace drun::agent {
namespace {

TEST(GuardMessages, SignsOfLifeSayNothingElse) {
  GuardMessages words;
  words.push("....");
  EXPECT_EQ(words.cgroup(), "");
}

TEST(GuardMessages, ACgroupIsHeardHoweverThePipeCutsIt) {
  const std::string stream = "..C/sys/fs/cgroup/user.slice/drun-1\n..";
  for (std::size_t step = 1; step <= stream.size(); ++step) {
    GuardMessages words;
    for (std::size_t at = 0; at < stream.size(); at += step) words.push(std::string_view(stream).substr(at, step));
    EXPECT_EQ(words.cgroup(), "/sys/fs/cgroup/user.slice/drun-1") << "step " << step;
  }
}

TEST(GuardMessages, CgroupAndSocketAreToldApart) {
  GuardMessages words;
  words.push(".S/tmp/drun-1\n.C/sys/fs/cgroup/drun-2\n");
  EXPECT_EQ(words.cgroup(), "/sys/fs/cgroup/drun-2");
  EXPECT_EQ(words.socket_directory(), "/tmp/drun-1");
}

TEST(GuardMessages, WorkersAreMarkedByJobAndSocketTogether) {
  GuardMessages words;
  words.push("..J0123\n.");
  EXPECT_EQ(words.mark().job_id, "");
  words.push("S/tmp/drun-1\n");
  EXPECT_EQ(words.mark().job_id, "0123");
  EXPECT_EQ(words.mark().agent_socket, "/tmp/drun-1/agent");
}

TEST(GuardMessages, HalfANameIsNone) {
  GuardMessages words;
  words.push(".C/sys/fs/cgroup");
  EXPECT_EQ(words.cgroup(), "");
}

}  // namespace
}  // namespace drun::agent
