// The output of `rumor sim`, printed and in files, for virtual and real clusters.
#pragma once

#include <string>

#include "runtime/report/svg_chart.h"
#include "runtime/sim/record/sim_result.h"
#include "tools/words/command.h"

namespace rumor::tools {

// One line on stderr that rewrites itself on a terminal; elsewhere a line every few seconds.
class ProgressLine {
 public:
  ProgressLine();
  void show(const std::string& text);
  void clear();

 private:
  bool terminal_;
  bool open_ = false;
  double next_at_ = 0;
};

using sim::byte_text;

// Writes --json and --report, prints the closing summary on stdout (stderr when stdout carries the JSON).
// Returns the exit status.
int output_result(const sim::SimResult& result, const SimCommand& command);

}  // namespace rumor::tools
