// A report page: one self-contained HTML file, without scripts, fonts or other files; light or dark as the reader's
// system is. Charts: svg_chart.h, point_chart.h. Tables: table.h.
//
// Thread: plain functions.
#pragma once

#include <string>

namespace rumor::sim {

// The whole file around `body`, with the style that figures, tables (td.n, th.n: right-aligned numbers), div.wide
// (scrolls where it is too wide) and div.charts rely on. Both are HTML already: escape what others named (html_escape).
std::string html_page(const std::string& title, const std::string& body);

}  // namespace rumor::sim
