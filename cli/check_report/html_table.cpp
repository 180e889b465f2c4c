#include "cli/check_report/html_table.h"

#include <algorithm>

#include "cli/check_report/markup.h"

namespace drun::cli {

namespace {

std::string of_class(const std::string& name) { return name.empty() ? "" : attribute("class", name); }

}  // namespace

void HtmlTable::add(std::string attributes, std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back({std::move(attributes), std::move(cells)});
}

bool HtmlTable::shown(std::size_t column) const {
  return std::any_of(rows_.begin(), rows_.end(), [&](const Row& row) { return !row.cells[column].empty(); });
}

bool HtmlTable::shows(const std::string& title) const {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].title == title) return shown(i);
  }
  return false;
}

std::string HtmlTable::markup() const {
  std::string out = "<table class='rows'><thead><tr>";
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (shown(i)) out += "<th" + of_class(columns_[i].css_class) + ">" + escape(columns_[i].title) + "</th>";
  }
  out += "</tr></thead><tbody>";
  for (const Row& row : rows_) {
    out += "<tr" + row.attributes + ">";
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (!shown(i)) continue;
      const std::string& text = row.cells[i];
      const std::string none = !text.empty() ? "" : columns_[i].css_class.empty() ? "none" : " none";
      out += "<td" + of_class(columns_[i].css_class + none) + attribute("data-title", columns_[i].title) + "><span>" +
             (text.empty() ? "\u2013" : text) + "</span></td>";
    }
    out += "</tr>";
  }
  return out + "</tbody></table>";
}

}  // namespace drun::cli
