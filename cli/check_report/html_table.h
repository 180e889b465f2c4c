// A table of HTML whose columns are known only when all of its cells are: one in which no row has anything is left out.
// Every cell knows the title of its column, for a narrow window in which a row becomes a list. Pure.
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

  // `attributes`: of the row. Cells are markup, as many as there are columns; "" = nothing.
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
