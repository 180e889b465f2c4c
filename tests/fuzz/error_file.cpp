// The error file of a worker, and what its output says about its failure.
#include "launcher/report/first_failure.h"
#include "launcher/report/last_lines.h"
#include "launcher/report/same_failure.h"
#include "tests/fuzz/fuzz.h"

namespace drun::fuzz {
namespace {

using namespace launcher;

void run(std::string_view bytes) {
  const std::size_t before = allocated_bytes();
  const std::string error = torch_error(bytes);
  expect(error.size() <= 2 * bytes.size(), "an error is a part of its file");
  expect_bounded_memory(before, bytes.size());

  Input in(bytes);
  std::vector<JobFailure> failures;
  LastLines lines;
  while (!in.empty() && failures.size() < 8) {
    const auto stream = in.below(2) == 0 ? control::Stream::kStdout : control::Stream::kStderr;
    lines.push(stream, in.text());
    JobFailure f;
    f.rank = static_cast<int>(in.below(4));
    f.host = in.below(2) == 0 ? "a" : "b";
    f.signal = static_cast<int>(in.below(16));
    f.when.earliest_ns = static_cast<std::int64_t>(in.number());
    f.when.latest_ns = f.when.earliest_ns + static_cast<std::int64_t>(in.number());
    f.last_lines = lines.lines();
    expect(f.last_lines.size() <= LastLines::kLines, "the last lines are few");
    for (const auto& line : f.last_lines) expect(line.size() <= LastLines::kLineBytes + 3, "the last lines are short");
    if (in.below(4) == 0) f.own_error = error;
    failures.push_back(std::move(f));
  }
  if (failures.empty()) return;
  const std::size_t n = failures.size();
  for (const auto& f : failures) {
    (void)is_same_failure(failures.front(), f);
    (void)wrote_same_traceback(failures.front(), f);
    (void)telling_line(f.last_lines);
  }
  std::size_t n_grouped = 0;
  for (const auto& group : same_failures(failures)) n_grouped += group.size();
  expect(n_grouped == n, "each failure is in one group");
  const FirstFailure first = find_first_failure(std::move(failures), 1 << 20);
  expect(!first.first.empty() && first.first.size() + first.consequences.size() == n, "no failure is lost");
}

std::vector<std::string> seeds() {
  const auto failure = [](std::size_t rank, std::string_view output) {
    return std::string(Script().byte(1).text(output).byte(rank).byte(0).byte(6).number(1000).number(10).byte(1));
  };
  return {
      R"({"message": {"message": "ValueError: nan", "extraInfo": {"py_callstack": "Traceback", "timestamp": "1"}}})",
      R"({"message": "plain"})",
      R"({"message": {"errorCode": 1}})",
      "[1, 2",
      failure(0, "Traceback (most recent call last):\n  File \"a.py\", line 1\nValueError: rank 0\n") +
          failure(1, "Traceback (most recent call last):\n  File \"a.py\", line 1\nValueError: rank 1\n"),
      failure(0, "NCCL WARN ncclRemoteError\n\x1b[31mred\x1b[0m\r\n") +
          failure(2, "rank 1 on node1 (pid 53): killed by SIGSEGV"),
  };
}

const Target kTarget("error_file", run, seeds);

}  // namespace
}  // namespace drun::fuzz
