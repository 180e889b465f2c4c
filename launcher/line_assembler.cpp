#include "launcher/line_assembler.h"

namespace drun::launcher {

void LineAssembler::push(std::string_view bytes) {
  if (start_ > 0) pending_.erase(0, std::exchange(start_, 0));
  pending_.append(bytes);
}

std::string LineAssembler::next() {
  const auto end = pending_.find_first_of("\r\n", start_);
  std::size_t length = 0;
  if (end != std::string::npos) {
    length = end + 1 - start_;
    if (pending_[end] == '\r') {
      if (end + 1 == pending_.size()) return {};  // "\r\n" may be on its way
      if (pending_[end + 1] == '\n') ++length;
    }
  } else if (pending_.size() - start_ >= kLimit) {
    length = kLimit;
  } else {
    return {};
  }
  std::string line = pending_.substr(start_, length);
  start_ += length;
  return line;
}

std::string LineAssembler::take_rest() {
  std::string rest = pending_.substr(start_);
  pending_.clear();
  start_ = 0;
  return rest;
}

void TaggedOutput::put(int owner, std::string_view tag, std::string_view piece) {
  if (piece.empty()) return;
  if (open_owner_ != owner) {
    if (open_owner_ >= 0) out_ += '\n';
    out_ += tag;
  }
  out_ += piece;
  const char last = piece.back();
  open_owner_ = last == '\n' || last == '\r' ? -1 : owner;
}

}  // namespace drun::launcher
