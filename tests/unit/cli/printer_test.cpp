#include "cli/printer.h"

#include <gtest/gtest.h>

#include "base/error_id.h"
#include "tests/hostile_text.h"

namespace drun::cli {
namespace {

TEST(Printer, ErrorHasSubjectCauseContextAndHint) {
  const Error error = Error(Errc::kUnreachable, "node3", "connect: 10.0.0.13 port 22: connection refused")
                          .with_id(error_id::kConnect)
                          .with_context("named in hosts.txt:4:1")
                          .with_context("a second line")
                          .with_hint("ssh node3 true");
  EXPECT_EQ(format_error(error, false),
            "drun: error: node3: connect: 10.0.0.13 port 22: connection refused [connect]\n"
            "  named in hosts.txt:4:1\n"
            "  a second line\n"
            "  hint: ssh node3 true\n");
}

TEST(Printer, LeavesOutWhatIsNotThere) {
  EXPECT_EQ(format_error(Error(Errc::kUsage, "no hosts"), false), "drun: error: no hosts [usage]\n");
}

TEST(Printer, ErrorsHaveTheCodeOfTheirKindOrTheirOwn) {
  const auto code = [](const Error& error) {
    const std::string line = format_error(error, false);
    return line.substr(line.rfind(' ') + 1);
  };
  EXPECT_EQ(code(Error(Errc::kTimeout, "a")), "[deadline]\n");
  EXPECT_EQ(code(Error(Errc::kNotFound, "a")), "[not-found]\n");
  EXPECT_EQ(code(Error(Errc::kCanceled, "a")), "[io]\n");
  EXPECT_EQ(code(Error(Errc::kAuth, "a")), "[wrong-key]\n");
  EXPECT_EQ(code(Error(Errc::kInternal, "a")), "[internal]\n");
  // The first one is the nearest to the cause.
  EXPECT_EQ(code(Error(Errc::kUnreachable, "a").with_id(error_id::kLogin).with_id(error_id::kSsh)), "[login]\n");
}

TEST(Printer, ColoursOnlyWhenAsked) {
  const Error error = Error(Errc::kUsage, "a").with_hint("b");
  EXPECT_EQ(format_error(error, false).find('\033'), std::string::npos);
  EXPECT_NE(format_error(error, true).find("\033[1;31merror"), std::string::npos);
}

// Each field is on its line; only the context has several.
TEST(Printer, NoTextCommandsTheTerminalOrForgesALine) {
  const std::string& evil = testing::kHostile;
  const std::string& shown = testing::kHostileInOneLine;
  const Error error = Error(Errc::kUnreachable, evil, evil).with_context(evil).with_hint(evil);
  const std::string text = format_error(error, false);
  EXPECT_EQ(text, "drun: error: " + shown + ": " + shown +
                      " [unreachable]\n  why ?]0;EVIL??[2J ?31m ?32m ? ?\n    | forged\n  hint: " + shown + "\n");
  EXPECT_EQ(format_note(evil), "drun: note: why ?]0;EVIL??[2J ?31m ?32m ? ?\n  | forged\n");
  EXPECT_EQ(format_warning(evil, false), "drun: warning: why ?]0;EVIL??[2J ?31m ?32m ? ?\n  | forged\n");
}

TEST(Error, AddingToItselfKeepsTheRest) {
  Error error(Errc::kUsage, "subject", "cause");
  error = std::move(error).with_context("context");
  EXPECT_EQ(error.message(), "subject: cause");
}

}  // namespace
}  // namespace drun::cli
