#include "control/frames.h"

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace drun::control {
namespace {

TEST(Frames, SurviveAnyCutOfTheStream) {
  const std::string stream = encode_frame(Type::kOutput, "hello") + encode_frame(Type::kHeartbeat, "") +
                             encode_frame(Type::kExited, std::string(100000, 'x'));
  for (const std::size_t step : {1u, 2u, 3u, 5u, 7u, 4096u, 200000u}) {
    FrameParser parser;
    std::vector<Frame> frames;
    for (std::size_t at = 0; at < stream.size(); at += step) {
      parser.push(std::string_view(stream).substr(at, step));
      for (;;) {
        auto frame = parser.next();
        ASSERT_TRUE(frame.has_value());
        if (!*frame) break;
        frames.push_back(std::move(**frame));
      }
    }
    ASSERT_EQ(frames.size(), 3u) << "step " << step;
    EXPECT_EQ(frames[0].type, Type::kOutput);
    EXPECT_EQ(frames[0].body, "hello");
    EXPECT_EQ(frames[1].body, "");
    EXPECT_EQ(frames[2].body.size(), 100000u);
  }
}

TEST(Frames, RejectsALengthOfZero) {
  FrameParser parser;
  parser.push(std::string(4, '\0'));
  const auto frame = parser.next();
  ASSERT_FALSE(frame.has_value());
  EXPECT_EQ(frame.error().code, Errc::kProtocol);
}

TEST(Frames, RejectsALengthBeyondTheLimitBeforeItArrives) {
  ByteWriter out;
  out.u32(static_cast<std::uint32_t>(kMaxFrame + 1));
  FrameParser parser;
  parser.push(out.bytes());
  EXPECT_FALSE(parser.next().has_value());
}

TEST(Frames, LeaveOutABodyThatNoParserWouldTake) {
  const auto body_after_parsing = [](std::size_t n_bytes) {
    FrameParser parser;
    parser.push(encode_frame(Type::kFacts, std::string(n_bytes, 'x')));
    const auto frame = parser.next();
    EXPECT_TRUE(frame.has_value() && frame->has_value());
    return frame && *frame ? (*frame)->body.size() : n_bytes + 1;
  };
  EXPECT_EQ(body_after_parsing(kMaxFrame - 1), kMaxFrame - 1);
  EXPECT_EQ(body_after_parsing(kMaxFrame), 0u);
}

}  // namespace
}  // namespace drun::control
