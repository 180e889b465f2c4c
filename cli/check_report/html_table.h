// An HTML table that leaves out columns in which every row is empty. Every cell carries the title of its column, for a
// narrow window in which a row becomes a list. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace drun::cli {

class HtmlTable {
 public:
  struct Column {
    std::string title;
    std::string css_class = {};
  };

  explicit HtmlTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // `attributes` belong to the row. Cells are markup, one per column; "" = empty.
  void add(std::string attributes, std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  bool shows(const std::string& title) const;

  std::string markup() const;

 private:
  struct Row {
    std::string attributes;
    std::vector<std::string> cells;
  };

  bool shown(std::size_t column) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

}  // namespace drun::cli
