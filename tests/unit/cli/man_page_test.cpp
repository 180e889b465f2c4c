#include "cli/man_page.h"

#include <gtest/gtest.h>

namespace drun::cli {
namespace {

TEST(ManPage, TextStaysWhatItIs) {
  EXPECT_EQ(roff("a-b 'GLOB*' ~/x \\n `c` ^"), "a\\-b \\(aqGLOB*\\(aq \\(ti/x \\en \\(gac\\(ga \\(ha");
  EXPECT_EQ(roff(".SH no macro"), "\\&.SH no macro");
  EXPECT_EQ(roff("'quoted"), "\\&\\(aqquoted");
}

TEST(ManPage, OptionsInTextAreBold) {
  EXPECT_EQ(roff("with --bind-to: than (-x A), 1-2"), "with \\fB\\-\\-bind\\-to\\fR: than (\\fB\\-x\\fR A), 1\\-2");
  EXPECT_EQ(roff("- and -- and -1"), "\\- and \\-\\- and \\-1");
}

TEST(ManPage, OptionsHaveSections) {
  OptionRow hosts{"Hosts", {"-H", "--hosts"}, "LIST", false, "the hosts", {}};
  OptionRow to{"Hosts", {"--stdin"}, "RANK|all", false, "who", {}};
  OptionRow tag{"Output", {"--tag"}, "rank|host", true, "tags", {}};
  EXPECT_EQ(roff_options({hosts, to, tag}),
            ".SS Hosts\n.TP\n\\fB\\-H\\fR, \\fB\\-\\-hosts\\fR \\fILIST\\fR\nthe hosts\n"
            ".TP\n\\fB\\-\\-stdin\\fR \\fIRANK\\fR|\\fBall\\fR\nwho\n"
            ".SS Output\n.TP\n\\fB\\-\\-tag\\fR[=\\fBrank\\fR|\\fBhost\\fR]\ntags\n");
}

TEST(ManPage, MarksAreReplaced) {
  OptionRow yes{"Options", {"--yes"}, "", false, "do it", {}};
  EXPECT_EQ(
      man_page(".TH X 1 @VERSION@\n.\\\" SUMMARY\ntext\n.\\\" OPTIONS\nend", "drun-x", "what it does", {yes}, "1.2"),
      ".TH X 1 1.2\ndrun\\-x \\- what it does\ntext\n.SS Options\n.TP\n\\fB\\-\\-yes\\fR\ndo it\nend\n");
}

}  // namespace
}  // namespace drun::cli
