#include "runtime/report/table.h"

#include <algorithm>

#include "runtime/base/text.h"
#include "runtime/report/svg_chart.h"

namespace rumor::sim {

namespace {

std::string text_row(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths, std::size_t words) {
  std::string out;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string pad(widths[i] - cells[i].size(), ' ');
    out += "  " + (i < words ? cells[i] + pad : pad + cells[i]);
  }
  return out + "\n";
}

}  // namespace

std::string text_table(const Table& table) {
  std::vector<std::size_t> widths;
  for (const std::string& name : table.head) widths.push_back(name.size());
  for (const auto& row : table.rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string out = text_row(table.head, widths, table.words);
  for (const auto& row : table.rows) out += text_row(row, widths, table.words);
  return out;
}

std::string html_table(const Table& table) {
  std::string out = "<div class=\"wide\"><table><tr>";
  for (std::size_t i = 0; i < table.head.size(); ++i)
    out += str(i < table.words ? "<th>" : "<th class=\"n\">", html_escape(table.head[i]), "</th>");
  for (const auto& row : table.rows) {
    out += "</tr><tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const char* const kind = i == 0 ? "<th>" : i < table.words ? "<td>" : "<td class=\"n\">";
      out += str(kind, html_escape(row[i]), i == 0 ? "</th>" : "</td>");
    }
  }
  return out + "</tr></table></div>";
}

}  // namespace rumor::sim
