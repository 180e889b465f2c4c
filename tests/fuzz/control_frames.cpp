// The frames of the control channel: the cuts of the stream change nothing.
#include "control/frames.h"

#include <algorithm>

#include "tests/fuzz/fuzz.h"

namespace drun::fuzz {
namespace {

using namespace control;

// The frames, encoded again, and the error or the rest that the parser ends with.
std::string frames_of(FrameParser& parser, bool& failed) {
  std::string out;
  while (!failed) {
    auto frame = parser.next();
    if (!frame) {
      failed = true;
      expect(frame.error().code == Errc::kProtocol, "a wrong frame is kProtocol");
    } else if (!*frame) {
      break;
    } else {
      out += encode_frame((*frame)->type, (*frame)->body);
    }
  }
  return out;
}

// The first byte gives the number of cuts, the next ones their distances.
void run(std::string_view bytes) {
  Input in(bytes);
  const std::string_view cuts = in.text();
  const std::string_view stream = in.rest();
  FrameParser whole, cut;
  bool whole_failed = false, cut_failed = false;
  whole.push(stream);
  const std::string expected = frames_of(whole, whole_failed);
  expect(stream.substr(0, expected.size()) == expected, "frames are what came, in order");
  std::string got;
  std::string_view left = stream;
  for (std::size_t i = 0; !left.empty() && !cut_failed; ++i) {
    const std::size_t n =
        cuts.empty() ? left.size() : static_cast<unsigned char>(cuts[i % cuts.size()]) + std::size_t{1};
    cut.push(left.substr(0, n));
    left.remove_prefix(std::min(n, left.size()));
    got += frames_of(cut, cut_failed);
  }
  expect(got == expected && cut_failed == whole_failed, "cuts change nothing");
}

std::vector<std::string> seeds() {
  const std::string two = encode_frame(Type::kHeartbeat, "") + encode_frame(Type::kOutput, "some output");
  return {
      Script().text("").raw(two),
      Script().text(std::string(1, '\0')).raw(two),
      Script().text("\x01\x07\x02").raw(two + encode_frame(Type::kExited, std::string(300, 'e'))),
      Script().text("\x05").raw(two.substr(0, two.size() - 3)),
      Script().text("\x05").raw(two + std::string("\xff\xff\xff\xff\x0b", 5)),
      Script().text("").raw(std::string(4, '\0')),
  };
}

const Target kTarget("control_frames", run, seeds);

}  // namespace
}  // namespace drun::fuzz
