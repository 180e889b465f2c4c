// A terminal for tests: turns bytes into what the user sees. Supports only what drun writes and fails on anything else.
// Every character takes one column.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace drun::launcher {

class TerminalEmulator {
 public:
  TerminalEmulator(std::size_t columns, std::size_t n_rows) : columns_(columns), n_rows_(n_rows), rows_(1) {}

  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      if (bytes[0] == '\033') {
        const auto end = bytes.find_first_of("mAKJ");
        ASSERT_NE(end, std::string_view::npos) << bytes.substr(1);
        obey(bytes.substr(0, end + 1));
        bytes.remove_prefix(end + 1);
        continue;
      }
      if (bytes[0] == '\r') {
        column_ = 0;
      } else if (bytes[0] == '\n') {
        column_ = 0;
        down();
      } else {
        print(bytes);
        continue;
      }
      bytes.remove_prefix(1);
    }
  }

  // All rows since the beginning, including those that have scrolled away, without trailing spaces and empty rows.
  std::vector<std::string> rows() const {
    std::vector<std::string> out;
    for (const auto& cells : rows_) {
      std::string text;
      for (const auto& cell : cells) text += cell;
      text.erase(text.find_last_not_of(' ') + 1);
      out.push_back(text);
    }
    while (!out.empty() && out.back().empty()) out.pop_back();
    return out;
  }
  std::size_t column() const { return column_; }
  void press_enter() { write("\n"); }  // the terminal echoes a line that the user types

 private:
  using Row = std::vector<std::string>;  // one character per item

  std::size_t top() const { return rows_.size() > n_rows_ ? rows_.size() - n_rows_ : 0; }
  void down() {
    if (++at_ == rows_.size()) rows_.emplace_back();
  }
  void print(std::string_view& bytes) {
    ASSERT_GE(static_cast<unsigned char>(bytes[0]), 0x20) << "a control character";
    std::size_t n = 1;
    while (n < bytes.size() && (static_cast<unsigned char>(bytes[n]) & 0xc0) == 0x80) ++n;
    if (column_ == columns_) {  // the cursor was on the last column and wraps now
      column_ = 0;
      down();
    }
    Row& row = rows_[at_];
    if (row.size() <= column_) row.resize(column_ + 1, " ");
    row[column_++] = std::string(bytes.substr(0, n));
    bytes.remove_prefix(n);
  }
  void obey(std::string_view sequence) {
    const char what = sequence.back();
    if (what == 'm') return;
    ASSERT_EQ(sequence[1], '[');
    const auto number = std::string(sequence.substr(2, sequence.size() - 3));
    if (what == 'A') {
      const std::size_t n = std::stoul(number);
      ASSERT_GE(n, 1u);
      at_ -= std::min(n, at_ - top());
      return;
    }
    ASSERT_EQ(number, "") << "only to the end of a line or the screen";
    // A cursor on the last column is on that column's character.
    rows_[at_].resize(std::min(rows_[at_].size(), column_ == columns_ ? column_ - 1 : column_));
    if (what == 'J') rows_.resize(at_ + 1);
  }

  std::size_t columns_, n_rows_;
  std::vector<Row> rows_;
  std::size_t at_ = 0, column_ = 0;
};

}  // namespace drun::launcher
