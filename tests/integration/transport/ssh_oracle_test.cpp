// drun's reading of ssh config, compared with `ssh -G`.
#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <map>
#include <sstream>

#include "base/text.h"
#include "tests/integration/transport/sshd_fixture.h"
#include "transport/ssh_config.h"

namespace drun::transport::testing {
namespace {

struct Case {
  const char* name;
  const char* host;
  const char* config;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

// %DIR% is replaced by the test's folder.
const Case kCases[] = {
    {"Empty", "box", ""},
    {"HostNameUserPort", "host1", "Host host1\n  HostName 10.0.0.7\n  User root\n  Port 12345\n"},
    {"OtherHost", "host2", "Host host1\n  HostName 10.0.0.7\n  User root\n  Port 12345\n"},
    {"FirstValueWins", "a", "Host a\n Port 1\nHost *\n Port 2\n User u\nHost a\n User v\n"},
    {"GlobalLinesFirst", "a", "Port 7\nHost a\n Port 1\n"},
    {"Equals", "a", "Host=a\n Port=99\n User = bob\nHostName =  example.org\n"},
    {"Quotes", "a", "Host \"a\"\n User \"bob smith\"\n IdentityFile \"/tmp/my key\"\n"},
    {"SingleQuotes", "a", "Host a\n IdentityFile '/tmp/my key'\n"},
    {"Escapes", "a", "Host a\n IdentityFile /tmp/my\\ key\n"},
    {"CommentsAndBlanks", "a", "# c\n\n   # d\nHost a # tail\n   Port 5 # tail\n\tUser\tbob\t\n"},
    {"CaseOfKeywords", "a", "hOST a\n pORT 77\n HOSTNAME b\n"},
    {"Star", "node7", "Host node*\n User n\n"},
    {"Question", "node17", "Host node?\n User one\nHost node??\n User two\n"},
    {"Negation", "node3", "Host node* !node3\n User n\nHost *\n User m\n"},
    {"NegationAlone", "b", "Host !a\n User n\n"},
    {"SeveralPatterns", "c", "Host a b c\n Port 3\n"},
    {"PercentH", "web", "Host web\n HostName %h.example.org\n"},
    {"PercentPercent", "web", "Host web\n HostName x%%y\n"},
    {"IdentityFiles", "a", "Host a\n IdentityFile ~/k1\n IdentityFile /k2\nHost *\n IdentityFile ~/.ssh/k3\n"},
    {"IdentitiesOnly", "a", "Host a\n IdentitiesOnly yes\n IdentityFile /k\n"},
    {"IdentityAgent", "a", "Host a\n IdentityAgent /run/agent.sock\n"},
    {"IdentityAgentNone", "a", "Host a\n IdentityAgent none\n"},
    {"ProxyCommand", "a", "Host a\n ProxyCommand nc -x  \"proxy:1\" h p # not a comment\n"},
    {"ProxyJump", "a", "Host a\n ProxyJump jump1\n"},
    {"ProxyJumpUserPort", "a", "Host a\n ProxyJump me@jump1:2222\n"},
    {"ProxyJumpChain", "a", "Host a\n ProxyJump j1,me@j2\n"},
    {"ProxyJumpBeforeCommand", "a", "Host a\n ProxyJump j\n ProxyCommand nc h p\n"},
    {"ProxyCommandBeforeJump", "a", "Host a\n ProxyCommand nc h p\n ProxyJump j\n"},
    {"ProxyCommandNone", "a", "Host a\n ProxyCommand none\nHost *\n ProxyCommand nc h p\n"},
    {"KnownHosts", "a", "Host a\n UserKnownHostsFile /kh1 /kh2\n HostKeyAlias the-a\n"},
    {"KnownHostsNull", "a", "UserKnownHostsFile /dev/null\n"},
    {"ConnectTimeout", "a", "ConnectTimeout 17\n"},
    {"ConnectTimeoutMinutes", "a", "ConnectTimeout 1m30s\n"},
    {"MatchHost", "web", "Host web\n HostName web.example.org\nMatch host *.example.org\n Port 8\n"},
    {"MatchHostBeforeName", "web", "Match host *.example.org\n Port 8\nHost web\n HostName web.example.org\n"},
    {"MatchOriginalHost", "web", "Host web\n HostName x\nMatch originalhost web\n Port 9\n"},
    {"MatchList", "b", "Match host a,b\n Port 9\n"},
    {"MatchNegatedList", "b", "Match host *,!b\n Port 9\n"},
    {"MatchNegated", "b", "Match !host a\n Port 9\n"},
    {"MatchUser", "b", "User carol\nMatch user carol\n Port 9\nMatch user dave\n HostName d\n"},
    {"MatchLocalUserOther", "b", "Match localuser nobody-here\n Port 9\n"},
    {"MatchTwo", "b", "Match host b user carol\n Port 9\nMatch originalhost b host b\n User z\n"},
    {"MatchAll", "b", "Match host a\n Port 1\nMatch all\n Port 2\n"},
    {"MatchFinal", "web", "Match final\n Port 9\nHost web\n HostName x.example.org\n User u\n"},
    {"MatchFinalAll", "web", "Match final all\n Port 9\n User late\nHost web\n User u\n"},
    {"MatchFinalAfterFirstValue", "web", "Host web\n Port 5\nMatch final all\n Port 9\n"},
    {"MatchFinalHost", "web", "Host web\n HostName %h.example.org\nMatch final host web.example.org\n Port 9\n"},
    {"MatchFinalHostAsTyped", "web",
     "Host web\n HostName x\nMatch final host web\n Port 9\nMatch final originalhost web\n User u\n"},
    {"MatchNotFinal", "web", "Match !final\n Port 9\nMatch final\n Port 8\n User u\n"},
    {"MatchNotFinalAll", "web", "Match !final all\n Port 9\n"},
    {"MatchHostAll", "web", "Match host web all\n Port 9\nMatch host other all\n User u\n"},
    {"MatchCanonical", "web", "Match canonical\n Port 9\nMatch all\n User u\n"},
    {"MatchCanonicalInAFinalPass", "web", "Match canonical\n Port 9\nMatch final user nobody-here\n User u\n"},
    {"HostLinesOfAFinalPass", "web", "Host 10.*\n Port 9\nHost web\n HostName 10.0.0.1\nMatch final\n User u\n"},
    {"HostLinesOfAFinalPassByTheName", "web",
     "Host web\n HostName 10.0.0.1\nMatch final\n User u\nHost web\n Port 9\n"},
    {"HostNameOfAFinalPass", "web", "Match final\n HostName other\n Port 9\n"},
    {"HostNameOfAHostInAFinalPass", "web",
     "Host web\n HostName b\nHost b\n HostName c\n Port 9\nMatch final\n User u\n"},
    {"IdentityFilesOfTwoPasses", "web",
     "IdentityFile /k1\nIdentityFile ~/k2\nIdentityFile /k1\nMatch final\n IdentityFile /k3\n"},
    {"MatchFinalInAnInclude", "web", "Host other\n Include %DIR%/final\nMatch all\n Port 7\n"},
    {"IncludeOfAFinalPass", "web", "Match final all\n Include %DIR%/inc_b\nHost *\n Port 7\n"},
    {"Include", "inc", "Include %DIR%/inc_a\nHost inc\n Port 4\n User late\n"},
    {"IncludeGlob", "inc", "Include %DIR%/inc_*\n"},
    {"IncludeInactive", "other", "Host inc\n Include %DIR%/inc_b\n"},
    {"IncludeInactiveWithHost", "inc", "Host other\n Include %DIR%/inc_a\nHost inc\n Port 6\n"},
    {"IncludeInactiveWithMatch", "inc", "Host other\n Include %DIR%/with_match\nPort 6\n"},
    {"IncludeInactiveTwice", "inc", "Host other\n Include %DIR%/nested\nPort 6\n"},
    {"IncludeActive", "other", "Host other\n Include %DIR%/inc_b\nPort 6\n"},
    {"IncludeMissing", "other", "Include %DIR%/nothing/*\nPort 6\n"},
    {"IncludeScope", "x", "Host x\n Include %DIR%/inc_a\n User after\n"},
    {"NoNewlineAtEnd", "a", "Host a\n Port 3"},
    {"CarriageReturns", "a", "Host a\r\n Port 3\r\n User bob\r\n"},
};

class Oracle : public ::testing::TestWithParam<Case> {};

std::string home() { return ::getpwuid(::getuid())->pw_dir; }

std::string with_home(const std::string& path) { return starts_with(path, "~") ? home() + path.substr(1) : path; }

TEST_P(Oracle, AgreesWithSshG) {
  TempFolder folder;
  folder.write("inc_a", "Host inc\n User early\n HostName inc.example.org\n");
  folder.write("inc_b", "User from-b\n");
  folder.write("with_match", "Match exec true\n User from-c\nMatch all\n User from-all\n");
  folder.write("final", "Match final\n User from-d\n");
  folder.write("nested", "Host inc\n Include " + folder.path("inc_a") + "\n");
  std::string config = GetParam().config;
  for (auto at = config.find("%DIR%"); at != std::string::npos; at = config.find("%DIR%")) {
    config.replace(at, 5, folder.path());
  }
  folder.write("config", config);

  std::map<std::string, std::vector<std::string>> said;
  std::istringstream in(output_of("ssh -G -F " + folder.path("config") + " " + GetParam().host + " 2>&1"));
  for (std::string line; std::getline(in, line);) {
    const auto space = line.find(' ');
    said[line.substr(0, space)].push_back(space == std::string::npos ? "" : line.substr(space + 1));
  }
  const auto one = [&said](const std::string& key) { return said.contains(key) ? said[key].front() : ""; };

  Host host;
  host.name = GetParam().host;
  SshOptions options;
  options.config_file = folder.path("config");
  const auto target = resolve_ssh_target(host, options);
  ASSERT_TRUE(target) << target.error().message();
  EXPECT_EQ(target->needs_openssh, "");
  EXPECT_EQ(target->host_name, one("hostname"));
  EXPECT_EQ(target->user, one("user"));
  EXPECT_EQ(std::to_string(target->port), one("port"));
  EXPECT_EQ(target->identities_only, one("identitiesonly") == "yes");
  EXPECT_EQ(target->host_key_alias, one("hostkeyalias"));
  EXPECT_EQ(target->proxy_jump, one("proxyjump"));
  const auto or_none = [](const std::string& value) { return value == "none" ? "" : value; };
  EXPECT_EQ(or_none(target->proxy_command), or_none(one("proxycommand")));
  EXPECT_EQ(target->identity_agent, one("identityagent"));
  const std::string timeout = one("connecttimeout");
  EXPECT_EQ(std::to_string(target->connect_timeout.count()), timeout == "none" ? "0" : timeout);
  if (config.find("IdentityFile") != std::string::npos) {
    std::vector<std::string> files;
    for (const auto& file : said["identityfile"]) files.push_back(with_home(file));
    EXPECT_EQ(target->identity_files, files);
  }
  std::vector<std::string> known;
  const std::string known_text = one("userknownhostsfile");
  for (const auto word : split(known_text, ' ')) known.push_back(with_home(std::string(word)));
  EXPECT_EQ(target->user_known_hosts, known);
}

INSTANTIATE_TEST_SUITE_P(Config, Oracle, ::testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace drun::transport::testing
