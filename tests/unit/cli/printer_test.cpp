#include "cli/printer.h"

#include <gtest/gtest.h>

namespace drun::cli {
namespace {

TEST(Printer, ErrorHasSubjectCauseContextAndHint) {
  const Error error = Error(Errc::kUnreachable, "node3", "connect: 10.0.0.13 port 22: connection refused")
                          .with_context("named in hosts.txt:4:1")
                          .with_context("a second line")
                          .with_hint("ssh node3 true");
  EXPECT_EQ(format_error(error, false),
            "drun: error: node3: connect: 10.0.0.13 port 22: connection refused\n"
            "  named in hosts.txt:4:1\n"
            "  a second line\n"
            "  hint: ssh node3 true\n");
}

TEST(Printer, LeavesOutWhatIsNotThere) {
  EXPECT_EQ(format_error(Error(Errc::kUsage, "no hosts"), false), "drun: error: no hosts\n");
}

TEST(Printer, ColoursOnlyWhenAsked) {
  const Error error = Error(Errc::kUsage, "a").with_hint("b");
  EXPECT_EQ(format_error(error, false).find('\033'), std::string::npos);
  EXPECT_NE(format_error(error, true).find("\033[1;31merror"), std::string::npos);
}

TEST(Error, AddingToItselfKeepsTheRest) {
  Error error(Errc::kUsage, "subject", "cause");
  error = std::move(error).with_context("context");
  EXPECT_EQ(error.message(), "subject: cause");
}

}  // namespace
}  // namespace drun::cli
