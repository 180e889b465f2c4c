// The output of a host before its agent's hello, in any pieces: later output does not change an answer.
#include "launcher/connect/bootstrap_answer.h"

#include "control/frames.h"
#include "tests/fuzz/fuzz.h"

namespace drun::fuzz {
namespace {

using launcher::BootstrapAnswer;

const std::string kNonce = "n1";

void run(std::string_view bytes) {
  BootstrapAnswer first;
  // All prefixes of a short output, a few of a long one.
  const std::size_t step = 1 + bytes.size() / 64;
  for (std::size_t n = 0; n <= bytes.size(); n += step) {
    const auto answer = launcher::find_bootstrap_answer(bytes.substr(0, n), kNonce);
    if (answer.kind == BootstrapAnswer::kNone) {
      expect(first.kind == BootstrapAnswer::kNone, "an answer stays");
      continue;
    }
    expect(answer.end <= n, "an answer lies in the output");
    if (answer.kind == BootstrapAnswer::kMagic) {
      const auto magic = bytes.substr(answer.end - control::kMagic.size(), control::kMagic.size());
      expect(magic == control::kMagic, "the agent's bytes begin behind its magic");
    }
    if (first.kind == BootstrapAnswer::kNone) {
      first = answer;
    }
    expect(answer.kind == first.kind && answer.end == first.end && answer.detail == first.detail,
           "later output does not change an answer");
  }
}

std::vector<std::string> seeds() {
  const std::string magic(control::kMagic);
  return {
      "Welcome to node1!\n" + magic + "hello",
      "motd\nDRUN-n1-NEED\n" + magic,
      "motd\nDRUN-n1-NEEDGZ\n" + magic,
      "DRUN-n1-MACHINE aarch64\n",
      "DRUN-other-NEED\nDRUN-n1-NOPLACE /home/u/.cache /var/tmp\n",
      "DRUN-n1-FULL /var/tmp/drun-0,\r\n",
      "DRUN-n1-BROKEN /tmp: the checksum differs\n",
      "DRUN-n1-WHAT\n" + magic,
      "echo DRUN-n1-NEED;head\n" + magic,
  };
}

const Target kTarget("bootstrap_answer", run, seeds);

}  // namespace
}  // namespace drun::fuzz
