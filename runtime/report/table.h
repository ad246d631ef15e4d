// Table: rows of text under a head, for a terminal and for a page.
//
// Thread: plain values and functions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace rumor::sim {

struct Table {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;  // each as long as the head
  std::size_t words = 1;  // so many of the first columns are words, aligned left; the others are numbers, right
};

// A line for the head and one for each row, each behind two blanks.
std::string text_table(const Table& table);
// Cells are escaped here.
std::string html_table(const Table& table);

}  // namespace rumor::sim
