#include "base/error.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace drun {
namespace {

Result<int> half(int v) {
  if (v % 2 != 0) return fail(Errc::kUsage, "-n", "odd");
  return v / 2;
}

TEST(Error, ReadsSubjectThenCause) {
  EXPECT_EQ(Error(Errc::kUsage, "-H", "empty").message(), "-H: empty");
  EXPECT_EQ(Error(Errc::kIo, "gone").message(), "gone");
}

TEST(Error, TravelsInAResult) {
  EXPECT_EQ(half(4).value(), 2);
  const auto bad = half(3);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, Errc::kUsage);
  EXPECT_EQ(bad.error().message(), "-n: odd");
  EXPECT_EQ(Result<void>(fail(Errc::kClosed, "eof")).error().message(), "eof");
}

TEST(Error, CollectsWhatCallersKnow) {
  const Error e = Error(Errc::kIo, "refused").with_context("connecting").with_context("as root").with_hint("-p 22");
  EXPECT_EQ(e.context, "connecting\nas root");
  EXPECT_EQ(e.hint, "-p 22");
  EXPECT_EQ(e.message(), "refused");
}

TEST(Error, KeepsTheFirstSubject) {
  EXPECT_EQ(Error(Errc::kIo, "x").with_subject("host1").subject, "host1");
  EXPECT_EQ(Error(Errc::kIo, "a", "x").with_subject("b").subject, "a");
}

TEST(Error, FromErrnoBeginsInLowerCase) {
  const Error e = errno_error(ENOENT, "hosts");
  EXPECT_EQ(e.code, Errc::kIo);
  EXPECT_EQ(e.cause, "hosts: no such file or directory");
}

TEST(FoldErrors, ThoseThatDifferInTheirSubjectAloneBecomeOne) {
  std::vector<Error> errors;
  for (const char* host : {"h1", "h2", "h3"}) errors.push_back(Error(Errc::kNotFound, host, "no 'x'").with_hint("y"));
  errors.insert(errors.begin() + 1, Error(Errc::kNotFound, "h9", "no 'z'"));
  errors.emplace_back(Errc::kUsage, "of the job");
  errors.emplace_back(Errc::kUsage, "of the job");
  const auto folded = fold_errors(errors);
  ASSERT_EQ(folded.size(), 4u);
  EXPECT_EQ(folded[0].message(), "h1, h2 and h3: no 'x'");
  EXPECT_EQ(folded[0].hint, "y");
  EXPECT_EQ(folded[1].message(), "h9: no 'z'");
  EXPECT_EQ(folded[3].message(), "of the job");
}

TEST(FoldErrors, ManyAreCounted) {
  std::vector<Error> errors;
  for (int i = 1; i <= 64; ++i) errors.emplace_back(Errc::kNotFound, "h" + std::to_string(i), "no 'x'");
  ASSERT_EQ(fold_errors(errors).size(), 1u);
  EXPECT_EQ(fold_errors(errors)[0].subject, "h1, h2, h3, h4, h5, h6, h7 and 57 others");
}

}  // namespace
}  // namespace drun
