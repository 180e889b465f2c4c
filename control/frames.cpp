#include "control/frames.h"

#include "base/bytes.h"

namespace drun::control {

std::string encode_frame(Type type, std::string_view body) {
  if (!fits_into_frame(body)) body = {};
  ByteWriter out;
  out.u32(static_cast<std::uint32_t>(body.size() + 1));
  out.u8(static_cast<std::uint8_t>(type));
  out.raw(body);
  return out.take();
}

Result<std::optional<Frame>> FrameParser::next() {
  const std::string_view have = std::string_view(buffer_).substr(start_);
  ByteReader in(have);
  const std::size_t length = in.u32();
  if (in.ok() && (length == 0 || length > kMaxFrame)) {
    return fail(Errc::kProtocol, "control frame of " + std::to_string(length) + " bytes");
  }
  if (!in.ok() || in.left() < length) {
    if (start_ > 0) buffer_.erase(0, std::exchange(start_, 0));
    return std::optional<Frame>();
  }
  Frame frame;
  frame.type = static_cast<Type>(in.u8());
  frame.body = std::string(in.raw(length - 1));
  start_ += 4 + length;
  if (start_ == buffer_.size()) {
    buffer_.clear();
    start_ = 0;
  }
  return std::optional<Frame>(std::move(frame));
}

}  // namespace drun::control
