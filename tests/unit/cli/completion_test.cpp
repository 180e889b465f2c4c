#include "cli/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::cli {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using Kind = Completion::Kind;
using Words = std::vector<std::string>;

Words hosts(const std::string& config) {
  if (config == "other") return {"elsewhere"};
  return {"node1", "node2", "login", "fd00::2"};
}

Words groups(const std::string& config) {
  if (config == "other.toml") return {"elsewhere"};
  return {"gpu", "cpu"};
}

Completion of(const Words& words) { return complete(words, {hosts, groups}); }

Words found(const Words& words) {
  Words out;
  for (const auto& candidate : of(words).candidates) out.push_back(candidate.word);
  return out;
}

TEST(Completion, OptionNames) {
  EXPECT_THAT(found({"--transp"}), ElementsAre("--transport"));
  EXPECT_THAT(found({"-np", "2", "--time"}), ElementsAre("--timestamp-output", "--timeout", "--timeline"));
  EXPECT_THAT(found({"run", "--transp"}), ElementsAre("--transport"));
  EXPECT_THAT(found({"check", "--str"}), ElementsAre("--strict"));
  EXPECT_THAT(found({"check", "-np"}), IsEmpty());
  EXPECT_THAT(found({"clean", ""}), Contains("--all-users")) << "no command comes there";
  EXPECT_FALSE(of({"--transp"}).candidates.front().text.empty());
}

TEST(Completion, ValuesOfOptions) {
  EXPECT_THAT(found({"--transport", ""}), Contains("openssh"));
  EXPECT_THAT(found({"--transport=open"}), ElementsAre("openssh"));
  EXPECT_THAT(found({"--compat", "r"}), ElementsAre("real-horovod"));
  EXPECT_THAT(found({"--network-interface", "eth0", "--vers"}), ElementsAre("--version")) << "the other spelling";
  EXPECT_EQ(of({"--transport=open"}).kept, "--transport=");
  EXPECT_THAT(found({"--tag-output=r"}), ElementsAre("rank"));
  EXPECT_THAT(found({"check", "--for", "n"}), ElementsAre("nccl"));
  EXPECT_THAT(found({"--no-such=", ""}), IsEmpty());
  EXPECT_THAT(found({"-np", ""}), IsEmpty());
  EXPECT_EQ(of({"-np", ""}).kind, Kind::kWords);
  EXPECT_EQ(of({"--hostfile", ""}).kind, Kind::kFiles);
  EXPECT_EQ(of({"-hostfile", "ho"}).kind, Kind::kFiles) << "mpirun's spelling";
  EXPECT_EQ(of({"-vi", ""}).kind, Kind::kFiles);
  EXPECT_EQ(of({"--hostfile=ho"}).kept, "--hostfile=");
  EXPECT_EQ(of({"--wdir", ""}).kind, Kind::kDirectories);
  EXPECT_THAT(found({"bench", "-o", "all_reduce,bro"}), ElementsAre("broadcast"));
}

TEST(Completion, GroupsOfHosts) {
  EXPECT_THAT(found({"-H", "@"}), ElementsAre("@gpu", "@cpu"));
  EXPECT_THAT(found({"-H", "node1,@g"}), ElementsAre("@gpu"));
  EXPECT_THAT(found({"--exclude", "node1,@g"}), ElementsAre("@gpu"));
  EXPECT_EQ(of({"-H", "node1,@g"}).kept, "node1,");
  EXPECT_THAT(found({"-H", "@gpu,@"}), ElementsAre("@cpu"));
  EXPECT_THAT(found({"--config", "other.toml", "--hosts=@"}), ElementsAre("@elsewhere"));
  EXPECT_THAT(found({"-H", "root@n"}), ElementsAre("node1", "node2")) << "a user, and no group";
  for (const std::string command : {"run", "check", "bench", "clean"}) {
    EXPECT_THAT(found({command, "-H", "@g"}), ElementsAre("@gpu")) << command;
  }
}

TEST(Completion, InitKnowsNoGroups) {
  EXPECT_THAT(found({"init", "-H", "@"}), IsEmpty());
  EXPECT_THAT(found({"init", "-H", "node1,@g"}), IsEmpty());
  EXPECT_THAT(found({"init", "-H", ""}), ElementsAre("localhost", "node1", "node2", "login", "[fd00::2]"));
}

TEST(Completion, TheLastHostOfAList) {
  EXPECT_THAT(found({"-H", "no"}), ElementsAre("node1", "node2"));
  EXPECT_EQ(of({"-H", "no"}).kind, Kind::kList);
  EXPECT_THAT(found({"-H", ""}), ElementsAre("localhost", "node1", "node2", "login", "[fd00::2]", "@gpu", "@cpu"));
  EXPECT_EQ(of({"--hosts", "root@login:2,no"}).kept, "root@login:2,");
  EXPECT_THAT(found({"--hosts", "node1,no"}), ElementsAre("node2")) << "node1 is there already";
  EXPECT_EQ(of({"--hosts=a,root@n"}).kept, "--hosts=a,root@");
  EXPECT_THAT(found({"--host", "log"}), ElementsAre("login"));
  EXPECT_THAT(found({"-H", "node[1,n"}), IsEmpty());
  EXPECT_THAT(found({"-F", "other", "-H", ""}), ElementsAre("localhost", "elsewhere", "@gpu", "@cpu"));
  EXPECT_THAT(found({"check", "--ssh-config=other", "-H", "e"}), ElementsAre("elsewhere"));
}

TEST(Completion, TheCommandAfterTheOptions) {
  EXPECT_EQ(of({"-np", "2", "./tr"}).kind, Kind::kCommand);
  EXPECT_EQ(of({"-np", "2", "./tr"}).command_at, 2u);
  EXPECT_EQ(of({"-np", "2", "python3", "-"}).command_at, 2u);
  EXPECT_EQ(of({"-np", "2", "--", "-"}).command_at, 3u);
  EXPECT_EQ(of({"run", "--pty", "pyth"}).command_at, 2u);
  EXPECT_EQ(of({"run", "--", "run", ""}).command_at, 2u);
  EXPECT_EQ(of({"check", "-H", "a", "pyth"}).command_at, 3u);
  EXPECT_EQ(of({"bench", "x"}).kind, Kind::kWords);
  EXPECT_EQ(of({"horovodrun", "-np", ""}).kind, Kind::kFiles);
}

TEST(Completion, SubcommandsAreOnlyTheFirstWord) {
  EXPECT_THAT(found({"c"}), ElementsAre("check", "clean"));
  EXPECT_EQ(of({"c"}).kind, Kind::kCommand) << "or any program";
  EXPECT_THAT(found({""}), Not(Contains("__complete")));
  EXPECT_THAT(found({"--pty", "c"}), IsEmpty());
  EXPECT_THAT(of({}).candidates, IsEmpty());
}

TEST(Completion, TheTextHasAnAnswerPerLine) {
  EXPECT_EQ(completion_text(of({"-H", "a,log"})), "list\na,\n0\nlogin\t\n");
}

}  // namespace
}  // namespace drun::cli
