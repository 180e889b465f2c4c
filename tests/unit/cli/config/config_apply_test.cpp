#include "cli/config/config_apply.h"

#include <gtest/gtest.h>
#include <pwd.h>

#include <CLI/CLI.hpp>

#include "cli/job_options.h"

namespace drun::cli {
namespace {

using Words = std::vector<std::string>;

ConfigFile file(const std::string& name, const std::string& text) {
  ConfigFile out;
  out.name = name;
  out.folder = "/folder";
  auto entries = parse_config(text, name);
  EXPECT_TRUE(entries.has_value());
  if (entries) out.entries = std::move(*entries);
  return out;
}

// Some options of drun run.
struct Call {
  CLI::App app;
  RawJobOptions raw;
  bool tag = false, no_tag = false;
  std::string check = "default";

  explicit Call(Words args = {}) {
    describe_workers(app, raw);
    describe_hosts(app, raw);
    describe_interfaces(app, raw);
    describe_cache(app, raw);
    describe_connection(app, raw);
    describe_log(app, raw);
    app.add_flag("--tag-output", tag);
    app.add_flag("--no-tag-output", no_tag);
    app.add_option("--check", check);
    std::reverse(args.begin(), args.end());
    app.parse(args);
  }
  Result<AppliedConfig> apply(const std::vector<ConfigFile>& files, const std::string& command = "run") {
    return apply_config(app, command, "/home/me", files);
  }
  // "" = accepted.
  std::string error(const std::string& text) {
    const auto applied = apply({file("f", text)});
    return applied ? "" : applied.error().message();
  }
};

TEST(ConfigApply, TheCommandLineWinsAndThenTheNearestFile) {
  Call call({"--ssh-port", "1"});
  const auto near = file("near", "ssh-port = 2\nstart-timeout = 3\nno-cache = false\n");
  const auto far = file("far", "ssh-port = 4\nstart-timeout = 5\nno-cache = true\ntransport = \"openssh\"\n");
  const auto applied = call.apply({near, far});
  ASSERT_TRUE(applied.has_value()) << applied.error().message();
  const ConfigOrigins* const origins = &applied->origins;
  EXPECT_EQ(call.raw.port, 1);
  EXPECT_EQ(call.raw.start_timeout, 3);
  EXPECT_FALSE(call.raw.no_cache);
  EXPECT_EQ(call.raw.transport, "openssh");
  EXPECT_FALSE(origins->has("--ssh-port"));
  EXPECT_TRUE(origins->has("--transport"));
}

TEST(ConfigApply, OptionsThatExcludeEachOtherAreOneChoice) {
  Call call({"--hosts", "a", "--no-tag-output"});
  ASSERT_TRUE(call.apply({file("f", "hostfile = \"h\"\ntag-output = true\n")}).has_value());
  EXPECT_EQ(call.raw.hostfile, "");
  EXPECT_FALSE(call.tag);
  Call files;
  ASSERT_TRUE(files.apply({file("near", "hosts = \"a\""), file("far", "hostfile = \"h\"")}).has_value());
  EXPECT_EQ(files.raw.hostfile, "");
  EXPECT_EQ(files.raw.hosts, Words{"a"});
}

TEST(ConfigApply, ListsKeepTheirElements) {
  Call call;
  ASSERT_EQ(call.error("hosts = [\"[fd00::1]:2\", \"b:gpus=0,2\"]\nnetwork-interfaces = [\"eth0\", \"eth1\"]\n"), "");
  EXPECT_EQ(call.raw.hosts, (Words{"[fd00::1]:2", "b:gpus=0,2"}));
  EXPECT_EQ(call.raw.interfaces, (Words{"eth0", "eth1"}));
  Call none;
  ASSERT_EQ(none.error("hosts = []"), "");
  EXPECT_TRUE(none.raw.hosts.empty());
}

TEST(ConfigApply, UnknownKeysNameTheNearest) {
  const auto hint = [](const std::string& text) {
    const auto applied = Call().apply({file("f", text)});
    return applied ? "accepted" : applied.error().message() + "; " + applied.error().hint;
  };
  EXPECT_EQ(hint("\nnump = 3"), "f:2: unknown key 'nump'; did you mean num-proc?");
  EXPECT_EQ(hint("ssh_port = 3"), "f:1: unknown key 'ssh_port'; did you mean ssh-port?");
  EXPECT_EQ(hint("p = 3"), "f:1: unknown key 'p'; did you mean ssh-port?");
  EXPECT_EQ(hint("qqqq = 3"), "f:1: unknown key 'qqqq'; man drun.toml");
  EXPECT_EQ(hint("[qqqq]\na = 1"), "f:1: unknown key 'qqqq'; man drun.toml");
}

TEST(ConfigApply, AWrongValueNamesTheKey) {
  EXPECT_EQ(Call().error("no-cache = \"yes\""), "f:1: 'no-cache': needs true or false, not the text 'yes'");
  EXPECT_EQ(Call().error("no-cache = 1"), "f:1: 'no-cache': needs true or false, not 1");
  EXPECT_EQ(Call().error("verbose = 3"), "f:1: 'verbose': needs true or false, or 1 or 2, not 3");
  EXPECT_EQ(Call().error("ssh-port = \"x\""), "f:1: 'ssh-port': 'x' is not a number");
  EXPECT_EQ(Call().error("ssh-port = [1, 2]"), "f:1: 'ssh-port': takes one value, not a list");
  EXPECT_EQ(Call().error("np = true"), "f:1: 'np': needs a value (N), not true");
  EXPECT_EQ(Call().error("hosts = [true]"), "f:1: 'hosts': needs a list of texts");
  EXPECT_EQ(Call().error("transport = \"x\""), "f:1: 'transport': 'x' is none of ssh, openssh");
  EXPECT_EQ(Call().error("[np]\na = 1"), "f:1: 'np': is a table; it needs a value");
  EXPECT_EQ(Call().error("np = 1\nnum-proc = 1"), "f:2: 'num-proc' and 'np' are one option");
}

TEST(ConfigApply, AFlagMayCount) {
  Call call;
  ASSERT_EQ(call.error("verbose = 2"), "");
  EXPECT_EQ(call.raw.verbose, 2);
  Call none;
  ASSERT_EQ(none.error("verbose = 0"), "");
  EXPECT_EQ(none.raw.verbose, 0);
}

TEST(ConfigApply, PathsCountFromTheFolderOfTheFile) {
  Call call;
  ASSERT_EQ(call.error("hostfile = \"h\"\nssh-identity-file = \"~/k\"\nssh-config = \"none\"\nagent-path = \"a/b\"\n"),
            "");
  EXPECT_EQ(call.raw.hostfile, "/folder/h");
  EXPECT_EQ(call.raw.identity, "/home/me/k");
  EXPECT_EQ(call.raw.ssh_config, "none");
  EXPECT_EQ(call.raw.agent_path, "a/b") << "a path on the hosts";
  Call others;
  ASSERT_EQ(others.error("hostfile = \"~root/h\"\nssh-identity-file = \"~no such user/k\"\n"), "");
  EXPECT_EQ(others.raw.hostfile, ::getpwuid(0)->pw_dir + std::string("/h"));
  EXPECT_EQ(others.raw.identity, "~no such user/k");
}

TEST(ConfigApply, SomeOptionsAreOnlyForTheCommandLine) {
  EXPECT_EQ(Call().error("help = true"), "f:1: 'help' can be given only on the command line");
  EXPECT_EQ(Call().error("yes = true"), "f:1: 'yes' can be given only on the command line");
}

TEST(ConfigApply, AFileOfAProjectMayNotChooseProgramsOrKeys) {
  auto project = file("drun.toml", "ssh-port = 2\nssh-identity-file = \"k\"\n");
  project.is_of_project = true;
  const auto applied = Call({"--ssh-identity-file", "mine"}).apply({project});
  ASSERT_FALSE(applied.has_value()) << "an entry that does not count is refused, too";
  EXPECT_EQ(applied.error().message(),
            "drun.toml:2: 'ssh-identity-file' is not taken from a file that drun found in a working directory: it "
            "chooses the key or the settings by which drun logs in, and a cloned repository must not do that");
  EXPECT_EQ(applied.error().hint,
            "--config drun.toml if you trust the file, or put the key into ~/.config/drun/drun.toml");
}

TEST(ConfigApply, KeysOfOtherCommandsAreIgnored) {
  Call call;
  ASSERT_EQ(call.error("minbytes = \"8\"\nmax-rate = \"1gbit\"\npty = true\n"), "");
  EXPECT_EQ(call.app.count("--num-proc"), 0u);
  Call bench;
  ASSERT_TRUE(bench.apply({file("f", "check = \"full\"")}, "bench").has_value());
  EXPECT_EQ(bench.check, "default") << "--check of drun bench is a number";
}

TEST(ConfigApply, GroupsOfHostsAreNoOptionsButTheirDefaultIs) {
  Call call;
  const auto near = file("near", "[hosts.gpu]\nhosts = [\"n:8\"]\n");
  const auto far = file("far", "[hosts]\ndefault = [\"@gpu\", \"h\"]\ngpu = \"f:8\"\ncpu = \"c\"\n");
  const auto applied = call.apply({near, far});
  ASSERT_TRUE(applied.has_value()) << applied.error().message();
  EXPECT_EQ(call.raw.hosts, (Words{"@gpu", "h"}));
  ASSERT_EQ(applied->groups.size(), 3u);
  EXPECT_EQ(applied->groups.at(0).file, "near") << "of two groups with one name the nearest counts";
  Call typed({"-H", "@gpu"});
  ASSERT_TRUE(typed.apply({near, far}).has_value());
  EXPECT_EQ(typed.raw.hosts, Words{"@gpu"});
}

}  // namespace
}  // namespace drun::cli
