#include "cli/config/config_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/error_id.h"
#include "cli/command_check.h"
#include "cli/command_clean.h"
#include "cli/horovodrun.h"
#include "cli/options.h"
#include "tests/temp_folder.h"

namespace drun::cli {
namespace {

std::string error_of(const std::string& path) {
  const auto read = read_named_config(path);
  if (read) return "";
  EXPECT_EQ(read.error().code, Errc::kUsage);
  return read.error().message();
}

TEST(ConfigFiles, AFileThatCanNotBeReadIsNamed) {
  const testing::TempFolder folder;
  const std::string path = folder.path("job.toml");
  EXPECT_EQ(error_of(path), "--config: " + path + ": no such file or directory");
  EXPECT_EQ(error_of(folder.path()), "--config: " + folder.path() + ": is a directory");
  EXPECT_EQ(error_of(""), "--config: the name of the file is empty");
  folder.write("job.toml", "np 4\n");
  EXPECT_EQ(error_of(path).substr(0, path.size() + 5), path + ":1:4:");
}

TEST(ConfigFiles, AFileThatCouldExhaustTheStackIsTooLarge) {
  const testing::TempFolder folder;
  std::string dots(1u << 20, '.');
  for (std::size_t i = 0; i < dots.size(); i += 2) dots[i] = 'a';
  folder.write("job.toml", dots + "a = 1");
  EXPECT_EQ(error_of(folder.path("job.toml")), "--config: " + folder.path("job.toml") + ": larger than 65536 bytes");
}

TEST(ConfigFiles, TheNamedFileKnowsItsFolder) {
  const testing::TempFolder folder;
  folder.write("job.toml", "np = 4\n");
  const auto read = read_named_config(folder.path("job.toml"));
  ASSERT_TRUE(read.has_value()) << read.error().message();
  EXPECT_EQ(read->folder, folder.path());
  EXPECT_FALSE(read->is_of_project);
  EXPECT_EQ(read->entries.size(), 1u);
}

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Names = std::vector<std::string>;

// A home with drun's folder, and a git work tree with two folders below each other.
struct Tree {
  testing::TempFolder folder;
  ConfigPlaces places;

  Tree() {
    std::filesystem::create_directories(folder.path("repo/.git"));
    std::filesystem::create_directories(folder.path("repo/a/b"));
    places.working_directory = folder.path("repo/a/b");
    places.user_file = folder.path("home/drun/drun.toml");
    places.user = ::geteuid();
  }
  // The name of each file that is found, without the folder's; or the error.
  Names found() const {
    const auto files = find_configs(places);
    Names out;
    if (!files) return {without_folder(files.error().message())};
    for (const auto& file : *files) out.push_back(without_folder(file.name));
    return out;
  }
  std::string without_folder(std::string text) const {
    for (auto at = text.find(folder.path("")); at != std::string::npos; at = text.find(folder.path(""))) {
      text.replace(at, folder.path("").size(), "T");
    }
    return text;
  }
};

TEST(ConfigSearch, TheNearestFileIsTheFirstAndTheUsersTheLast) {
  Tree tree;
  EXPECT_THAT(tree.found(), IsEmpty());
  tree.folder.write("repo/a/b/drun.toml", "np = 1\n");
  tree.folder.write("repo/drun.toml", "np = 2\n");
  tree.folder.write("drun.toml", "np = 3\n");
  tree.folder.write("home/drun/drun.toml", "np = 4\n");
  EXPECT_THAT(tree.found(), ElementsAre("drun.toml", "../../drun.toml", "T/home/drun/drun.toml"));
  const auto files = find_configs(tree.places);
  EXPECT_TRUE(files->at(1).is_of_project);
  EXPECT_EQ(files->at(1).folder, tree.folder.path("repo"));
  EXPECT_FALSE(files->at(2).is_of_project);
}

TEST(ConfigSearch, WithoutAWorkTreeOnlyTheWorkingDirectoryCounts) {
  Tree tree;
  tree.folder.write("repo/drun.toml", "np = 2\n");
  std::filesystem::remove(tree.folder.path("repo/.git"));
  EXPECT_THAT(tree.found(), IsEmpty());
  tree.folder.write("repo/a/b/drun.toml", "np = 2\n");
  EXPECT_THAT(tree.found(), ElementsAre("drun.toml"));
  tree.folder.write("repo/.git", "gitdir: elsewhere\n");  // of a linked work tree
  EXPECT_THAT(tree.found(), ElementsAre("drun.toml", "../../drun.toml"));
}

TEST(ConfigSearch, TheUsersFileIsTheUsersAlsoInItsOwnDirectory) {
  Tree tree;
  tree.folder.write("home/drun/drun.toml", "x = [\"A=1\"]\n");
  tree.places.working_directory = tree.folder.path("home/drun");
  const auto files = find_configs(tree.places);
  ASSERT_TRUE(files.has_value());
  ASSERT_EQ(files->size(), 1u);
  EXPECT_FALSE(files->at(0).is_of_project);
}

// Gives the file to another user: root by chown, others by calling themselves another.
void give_away(Tree& tree, const std::string& name) {
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(tree.folder.path(name).c_str(), 1234, 1234), 0);
  } else {
    ++tree.places.user;
  }
}

TEST(ConfigSearch, AFileOfAnotherUserIsRefused) {
  for (const std::string name : {"repo/drun.toml", "home/drun/drun.toml"}) {
    Tree tree;
    tree.folder.write(name, "np = 2\n");
    give_away(tree, name);
    EXPECT_THAT(tree.found(), ElementsAre(HasSubstr("drun does not take options from another user's file"))) << name;
  }
}

TEST(ConfigSearch, AUsersFileThatOthersMayWriteIsRefused) {
  Tree tree;
  tree.folder.write("home/drun/drun.toml", "np = 2\n");
  const std::string path = tree.folder.path("home/drun/drun.toml");
  for (const mode_t mode : {0620u, 0602u}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    const auto files = find_configs(tree.places);
    ASSERT_FALSE(files.has_value());
    EXPECT_EQ(files.error().hint, "chmod go-w " + path);
  }
}

TEST(ConfigSearch, AFileThatCanNotBeReadIsNamed) {
  Tree tree;
  const std::string path = tree.folder.path("repo/drun.toml");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(tree.found(), ElementsAre("../../drun.toml: is not a regular file"));
  std::filesystem::remove(path);
  std::filesystem::create_symlink("nothing", path);
  EXPECT_THAT(tree.found(), ElementsAre("../../drun.toml: can't be read: no such file or directory"));
  std::filesystem::remove(path);
  tree.folder.write("repo/drun.toml", "np 2\n");
  EXPECT_THAT(tree.found(), ElementsAre(HasSubstr("../../drun.toml:1:4: not valid TOML")));
}

// Changes the working directory of the test for as long as it lives.
class InFolder {
 public:
  explicit InFolder(const std::string& path) : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(path);
  }
  ~InFolder() { std::filesystem::current_path(before_); }
  InFolder(const InFolder&) = delete;
  InFolder& operator=(const InFolder&) = delete;

 private:
  std::filesystem::path before_;
};

// Calls of drun in the work tree.
struct Calls : ::testing::Test {
  Tree tree;
  InFolder in{tree.folder.path("repo")};
  launcher::Environment env = {{"PATH", "/bin"}, {"XDG_CONFIG_HOME", tree.folder.path("home")}};

  Result<Options> run(Names args = {}) const {
    args.insert(args.end(), {"true"});
    return parse_options(args, env);
  }
};

TEST_F(Calls, OptionsComeFromTheFilesThatAreFound) {
  tree.folder.write("repo/drun.toml", "np = 3\n");
  tree.folder.write("home/drun/drun.toml", "np = 4\ngrace = 7\n");
  const auto job = run();
  ASSERT_TRUE(job.has_value()) << job.error().message();
  EXPECT_EQ(job->job.np, 3);
  EXPECT_EQ(job->job.grace.count(), 7000);
  EXPECT_EQ(job->config.summary(), "options from drun.toml, " + tree.places.user_file);
  EXPECT_EQ(job->config.hosts_note(), "");
  EXPECT_EQ(run({"-np", "5"})->job.np, 5);
}

TEST_F(Calls, ConfigReplacesTheSearch) {
  tree.folder.write("repo/drun.toml", "np = 3\nqqqq = 1\n");
  tree.folder.write("repo/job.toml", "pty = true\n");
  EXPECT_FALSE(run().has_value());
  const auto named = run({"--config", "job.toml"});
  ASSERT_TRUE(named.has_value()) << named.error().message();
  EXPECT_EQ(named->job.np, 0);
  EXPECT_TRUE(named->job.pty);
  const auto empty = run({"--config", ""});
  ASSERT_FALSE(empty.has_value());
  EXPECT_EQ(empty.error().message(), "--config: the name of the file is empty");
  EXPECT_EQ(empty.error().id, error_id::kConfigFile);
  const auto none = run({"--config", "none"});
  ASSERT_TRUE(none.has_value());
  EXPECT_THAT(none->config.files, IsEmpty());
}

TEST_F(Calls, AFileOfTheWorkingDirectoryMayNotSetTheEnvironmentButTheUsersMay) {
  tree.folder.write("home/drun/drun.toml", "x = [\"A=1\"]\n");
  ASSERT_TRUE(run().has_value());
  EXPECT_THAT(run()->job.env.exports, ElementsAre("A=1"));
  tree.folder.write("repo/drun.toml", "x = [\"LD_PRELOAD=./evil.so\"]\n");
  ASSERT_FALSE(run().has_value());
  EXPECT_THAT(run().error().message(), HasSubstr("drun.toml:1: 'x' is not taken from a file"));
  EXPECT_TRUE(run({"--config", "drun.toml"}).has_value());
}

TEST_F(Calls, HostsOfTheWorkingDirectoryAreNoted) {
  tree.folder.write("repo/drun.toml", "hosts = \"localhost:2\"\n");
  EXPECT_EQ(run()->config.hosts_note(), "the hosts are those of drun.toml");
  EXPECT_EQ(run({"-H", "localhost"})->config.hosts_note(), "");
  EXPECT_EQ(run({"--config", "drun.toml"})->config.hosts_note(), "");
}

TEST_F(Calls, GroupsServeTheListOfHosts) {
  tree.folder.write("repo/drun.toml", "[hosts]\ngpu = [\"g1:8\", \"g2:8\"]\ndefault = \"localhost:2\"\n");
  const auto typed = run({"-H", "@gpu,h9:2"});
  ASSERT_TRUE(typed.has_value()) << typed.error().message();
  ASSERT_EQ(typed->job.hosts.size(), 3u);
  EXPECT_EQ(typed->job.hosts.at(1).name, "g2");
  EXPECT_EQ(typed->job.hosts.at(2).slots, 2);
  EXPECT_EQ(typed->config.hosts_note(), "the hosts are those of drun.toml");
  EXPECT_EQ(run()->job.hosts.at(0).slots, 2);
  EXPECT_EQ(run({"-H", "@gpu", "-H", "@gpu"})->job.hosts.at(0).slots, 16) << "slots are added, as of any host";
  EXPECT_EQ(run({"--exclude", "localhost", "-H", "@default,@gpu", "--exclude", "g1"})->job.hosts.at(0).name, "g2");
  EXPECT_EQ(run({"-H", "@gpu,h9:2", "--exclude=h9"})->job.hosts.size(), 2u);
  EXPECT_EQ(run({"-H", "localhost,g1,g2", "--exclude=@default"})->job.hosts.size(), 2u);
  const auto mistyped = run({"-H", "a", "--exclude", "@gpx"});
  ASSERT_FALSE(mistyped);
  EXPECT_EQ(mistyped.error().message(), "--exclude: there is no group @gpx among @default, @gpu");
  EXPECT_EQ(mistyped.error().hint, "--exclude @gpu");
  EXPECT_EQ(run({"-H", "@gpx"}).error().message(), "-H: there is no group @gpx among @default, @gpu");
}

TEST_F(Calls, TheHostsOfABatchJobWinOverThoseOfAFileThatIsFound) {
  tree.folder.write("repo/drun.toml", "hosts = \"localhost:2\"\n");
  env.insert({{"SLURM_JOB_ID", "4"}, {"SLURM_JOB_NODELIST", "n1"}, {"SLURM_TASKS_PER_NODE", "3"}});
  EXPECT_EQ(run()->job.hosts.at(0).name, "n1");
  EXPECT_EQ(run({"--config", "drun.toml"})->job.hosts.at(0).name, "localhost");
}

TEST_F(Calls, SubcommandsTakeTheKeysThatTheyHave) {
  tree.folder.write("repo/drun.toml", "hosts = \"a:2\"\npty = true\nmax-rate = \"1gbit\"\n");
  const auto check = parse_check({}, env);
  ASSERT_TRUE(check.has_value()) << check.error().message();
  EXPECT_EQ(check->check.hosts.at(0).name, "a");
  EXPECT_GT(check->check.max_rate_bps, 0);
  EXPECT_EQ(check->config.hosts_note(), "the hosts are those of drun.toml");
  const auto clean = parse_clean({}, env);
  ASSERT_TRUE(clean.has_value()) << clean.error().message();
  EXPECT_EQ(clean->clean.hosts.at(0).name, "a");
  tree.folder.write("repo/drun.toml", "hosts = \"a:x\"\n");
  ASSERT_FALSE(parse_clean({}, env).has_value());
  EXPECT_THAT(parse_clean({}, env).error().subject, "drun.toml:1: 'hosts'");
}

TEST_F(Calls, HorovodrunReadsNoFile) {
  tree.folder.write("repo/drun.toml", "qqqq = 1\n");
  auto args = translate_horovodrun({"-np", "2", "true"}, nullptr, UnnamedHosts::kThisMachine)->args;
  args.erase(std::find(args.begin(), args.end(), "--compat"), std::find(args.begin(), args.end(), "--config"));
  const auto job = parse_options(args, env);
  ASSERT_TRUE(job.has_value()) << job.error().message();
  EXPECT_EQ(job->job.np, 2);
}

}  // namespace
}  // namespace drun::cli
