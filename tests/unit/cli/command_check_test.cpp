#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/exit_status.h"
#include "base/fd.h"
#include "cli/command_check.h"
#include "cli/whole_file.h"
#include "tests/unit/cli/captured.h"
#include "tests/unit/cli/check_report/samples.h"

namespace drun::cli {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/drun-check-test-XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~Folder() {
    std::error_code ec;
    fs::remove_all(path_, ec);
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(CheckOptions, DefaultsCheckLocalhost) {
  const auto c = parse_check({});
  ASSERT_TRUE(c.has_value()) << c.error().message();
  ASSERT_EQ(c->check.hosts.size(), 1u);
  EXPECT_EQ(c->check.hosts[0].name, "localhost");
  EXPECT_EQ(c->check.depth, check::CheckDepth::kDefault);
  EXPECT_EQ(c->check.max_rate_bps, 0);
  EXPECT_FALSE(c->check.gradient_bytes.has_value());
  EXPECT_TRUE(c->check.command.empty());
  EXPECT_FALSE(c->check.working_directory.empty());
  EXPECT_FALSE(c->json || c->strict);
}

TEST(CheckOptions, AreThoseOfRunForHosts) {
  const auto c = parse_check({"-H", "localhost:1,root@host1:2", "-p", "12345", "-F", "none", "--transport", "openssh",
                              "--start-timeout", "7", "--network-interfaces", "eth0,10.0.0.0/8", "--timeout", "30"});
  ASSERT_TRUE(c.has_value()) << c.error().message();
  ASSERT_EQ(c->check.hosts.size(), 2u);
  EXPECT_EQ(c->check.hosts[1].user, "root");
  EXPECT_EQ(c->check.connect.ssh.port, 12345);
  EXPECT_TRUE(c->check.connect.use_openssh);
  EXPECT_EQ(c->check.interfaces, (std::vector<std::string>{"eth0", "10.0.0.0/8"}));
  EXPECT_EQ(c->check.timeout.count(), 30000);
}

TEST(CheckOptions, SayWhatWillRun) {
  EXPECT_EQ(parse_check({})->check.purpose, check::Purpose::kAll);
  EXPECT_EQ(parse_check({"--for", "nccl"})->check.purpose, check::Purpose::kNccl);
  EXPECT_EQ(parse_check({"--for", "torch"})->check.purpose, check::Purpose::kTorch);
  EXPECT_EQ(parse_check({"--for", "libdrun"})->check.purpose, check::Purpose::kLibdrun);
  EXPECT_EQ(parse_check({"--for", "mpi"})->check.purpose, check::Purpose::kMpi);
  const auto unknown = parse_check({"--for", "horovod"});
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().message(), "--for: 'horovod' is none of nccl, torch, libdrun and mpi");
  EXPECT_EQ(unknown.error().hint, "--for torch");
}

TEST(CheckOptions, TakeFiguresWithUnits) {
  const auto c = parse_check({"--full", "--max-rate", "100mbit", "--model-params", "110M", "--dtype", "f16",
                              "--step-time", "300ms", "--json", "--strict"});
  ASSERT_TRUE(c.has_value()) << c.error().message();
  EXPECT_EQ(c->check.depth, check::CheckDepth::kFull);
  EXPECT_EQ(c->check.max_rate_bps, 1e8);
  EXPECT_EQ(c->check.gradient_bytes, 220000000u);
  EXPECT_DOUBLE_EQ(c->check.step_seconds, 0.3);
  EXPECT_TRUE(c->json && c->strict);
  EXPECT_EQ(parse_check({"--quick", "--gradient-size", "25MiB"})->check.gradient_bytes, 26214400u);
  EXPECT_EQ(parse_check({"--model-params", "1k"})->check.gradient_bytes, 4000u);
}

TEST(CheckOptions, TakeACommandToCompare) {
  for (const std::vector<std::string>& args : {std::vector<std::string>{"-H", "a,b", "python3", "train.py", "--quick"},
                                               {"-H", "a,b", "--", "python3", "train.py", "--quick"}}) {
    const auto c = parse_check(args);
    ASSERT_TRUE(c.has_value());
    EXPECT_EQ(c->check.command, (std::vector<std::string>{"python3", "train.py", "--quick"}));
    EXPECT_EQ(c->check.depth, check::CheckDepth::kDefault);
  }
}

TEST(CheckOptions, ComplainAndSayWhatToType) {
  const struct {
    std::vector<std::string> args;
    const char* subject;
    const char* hint;
  } cases[] = {
      {{"--max-rate", "fast"}, "--max-rate", "--max-rate 1gbit"},
      {{"--max-rate", "100"}, "--max-rate", "--max-rate 1gbit"},
      {{"--gradient-size", "0"}, "--gradient-size", "--gradient-size 100MB"},
      {{"--model-params", "many"}, "--model-params", "--model-params 110M"},
      {{"--model-params", "1M", "--dtype", "f17"}, "--dtype", "--dtype f16"},
      {{"--dtype", "f16"}, "--dtype", "--model-params 110M"},
      {{"--model-params", "1M", "--gradient-size", "1MB"}, "--gradient-size", ""},
      {{"--step-time", "300"}, "--step-time", "--step-time 300ms"},
      {{"--quick", "--full"}, "--quick", ""},
      {{"--html", "-"}, "--html", "--html FILE"},
      {{"--html", ""}, "--html", "--html FILE"},
      {{"--html", "/no/such/folder/page.html"}, "--html", ""},
      {{"--html", "/tmp"}, "--html", ""},
      {{"--save-baseline", "/no/such/folder/b.json"}, "--save-baseline", ""},
      {{"--baseline", "/no/such/file"}, "--baseline", "--save-baseline"},
      {{"--timeout", "-1"}, "--timeout", ""},
      {{"--htm", "x"}, "--htm", "--html"},
      {{"-H", "a", "--hostfile", "b"}, "-H", ""},
  };
  for (const auto& one : cases) {
    const auto c = parse_check(one.args);
    ASSERT_FALSE(c.has_value()) << one.args[0];
    EXPECT_EQ(c.error().code, Errc::kUsage) << one.args[0];
    EXPECT_EQ(c.error().subject, one.subject) << c.error().message();
    EXPECT_NE(c.error().hint.find(one.hint), std::string::npos) << c.error().hint;
  }
}

TEST(CheckOptions, HelpNamesTheCommand) {
  const auto c = parse_check({"--help"});
  ASSERT_TRUE(c.has_value());
  EXPECT_NE(c->help.find("usage: drun check"), std::string::npos);
}

Checker made_up(check::CheckResult result, int* n_checks) {
  Checker out;
  out.check = [result = std::move(result), n_checks](check::CheckOptions, launcher::Reporter&) {
    ++*n_checks;
    return result;
  };
  out.status = [](const check::CheckResult& r, bool strict) {
    return r.verdict == check::Verdict::kWarnings && strict ? 1 : 0;
  };
  return out;
}

TEST(CheckCommand, WritesTextAndPage) {
  const Folder folder;
  int n_checks = 0;
  Printer printer;
  const Captured out(folder / "out");
  EXPECT_EQ(
      command_check({"-H", "a,b", "--html", folder / "page.html"}, made_up(samples::one_slow(4), &n_checks), printer),
      0);
  EXPECT_EQ(n_checks, 1);
  EXPECT_NE(out.text().find("drun check: ready with warnings\n"), std::string::npos);
  EXPECT_NE(read_file(folder / "page.html").value_or("").find("</html>"), std::string::npos);
  // No temporary file is left.
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 2);
}

TEST(CheckCommand, JsonIsInPlaceOfTheText) {
  const Folder folder;
  int n_checks = 0;
  Printer printer;
  const Captured out(folder / "out");
  EXPECT_EQ(command_check({"--json", "--strict"}, made_up(samples::one_slow(4), &n_checks), printer), 1);
  EXPECT_EQ(out.text().find("{\n  \"drun_check\": 1,"), 0u);
}

TEST(CheckCommand, APageThatCanNotBeWrittenStopsItBeforeTheCheck) {
  int n_checks = 0;
  Printer printer;
  EXPECT_EQ(command_check({"--html", "/no/such/folder/page.html"}, made_up(samples::healthy(2), &n_checks), printer),
            2);
  EXPECT_EQ(n_checks, 0);
}

TEST(CheckCommand, APageThatCanNoLongerBeWrittenLeavesTheRestOfTheReport) {
  const Folder folder;
  fs::create_directory(folder / "pages");
  int n_checks = 0;
  Checker checker = made_up(samples::healthy(2), &n_checks);
  const auto check = checker.check;
  checker.check = [&](check::CheckOptions options, launcher::Reporter& reporter) {
    fs::remove(folder / "pages");
    return check(std::move(options), reporter);
  };
  Printer printer;
  const Captured out(folder / "out");
  EXPECT_EQ(command_check({"--html", folder / "pages/page.html"}, checker, printer), 2);
  EXPECT_NE(out.text().find("drun check: ready\n"), std::string::npos);
}

TEST(WholeFile, KeepsWhatIsThereIfItCanNotBeReplaced) {
  const Folder folder;
  ASSERT_TRUE(write_whole(folder / "a", "old").has_value());
  ASSERT_TRUE(check_writable("--html", folder / "a").has_value());
  EXPECT_EQ(*read_file(folder / "a"), "old");
  ASSERT_TRUE(write_whole(folder / "a", "new").has_value());
  EXPECT_EQ(*read_file(folder / "a"), "new");
  EXPECT_FALSE(write_whole(folder.path(), "x").has_value());
}

TEST(WholeFile, WritesToDevicesAsTheyAre) {
  EXPECT_TRUE(check_writable("--html", "/dev/null").has_value());
  EXPECT_TRUE(write_whole("/dev/null", "x").has_value());
  EXPECT_FALSE(fs::is_regular_file("/dev/null"));
  const auto full = write_whole("/dev/full", "x");
  EXPECT_FALSE(full.has_value());
}

}  // namespace
}  // namespace drun::cli
