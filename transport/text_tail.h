// The last bytes of a stream that is read only afterwards, if at all.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace drun::transport {

class TextTail {
 public:
  static constexpr std::size_t kLimit = 4096;
  void append(std::string_view bytes) {
    text_.append(bytes);
    if (text_.size() > 2 * kLimit) text_.erase(0, text_.size() - kLimit);
  }
  std::string str() const { return text_.size() > kLimit ? text_.substr(text_.size() - kLimit) : text_; }

 private:
  std::string text_;
};

}  // namespace drun::transport
