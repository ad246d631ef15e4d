#include "tools/words/reference.h"

#include <algorithm>

#include "runtime/base/text.h"
#include "runtime/daemon/status/figure_text.h"
#include "runtime/run/run_config.h"

namespace rumor::tools {
namespace {

// In a table a bar would end the cell, and a line its row.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? "\\|" : c == '\n' ? " " : std::string(1, c);
  return out;
}

std::string code(const std::string& text) {
  return "`" + cell(text) + "`";
}

std::string row(std::initializer_list<std::string> cells) {
  std::string out = "|";
  for (const std::string& one : cells) out += " " + one + " |";
  return out + "\n";
}

std::string command_section(const CommandDoc& command, const std::string& parent) {
  std::string out = str("### ", parent, " ", command.name, "\n\n", command.summary, ".\n\n```\n",
                        synopsis(command, parent), "\n```\n\n");
  std::vector<OptionDoc> all = command.positionals;
  all.insert(all.end(), command.options.begin(), command.options.end());
  if (!all.empty()) out += row({"option", "takes", "what it is"}) + row({"---", "---", "---"});
  for (const OptionDoc& option : all) out += row({code(option.name), cell(option.argument), cell(option.help)});
  if (!command.footer.empty()) out += str("\n```\n", command.footer, "\n```\n");
  out += "\n";
  for (const CommandDoc& sub : command.commands) out += command_section(sub, parent + " " + command.name);
  return out;
}

std::string metrics_table() {
  std::string out = row({"metric", "kind", "what it is"}) + row({"---", "---", "---"});
  out += row({code("rumor_info"), "gauge", daemon::info_help});
  const FigureSheet sheet = daemon::described_figures();
  for (const FigureSheet::Block& block : sheet.blocks())
    for (const Figure& figure : block.figures) {
      if (figure.metric == FigureMetric::none || figure.metric == FigureMetric::info) continue;
      const char* kind = figure.metric == FigureMetric::counter ? "counter" : "gauge";
      out += row({code(std::string(figure.name)), kind, cell(std::string(figure.help))});
    }
  return out;
}

std::string keys_table() {
  std::string out =
      row({"key", "takes", "default", "equal on all peers", "what it is"}) + row({"---", "---", "---", "---", "---"});
  for (const RunKey& key : run_keys())
    out += row({code(key.name), cell(key.wants), key.by_default.empty() ? "" : code(key.by_default),
                key.shared ? "yes" : "", cell(std::string(run_key_help(key.name)))});
  return out;
}

}  // namespace

std::string synopsis(const CommandDoc& command, const std::string& parent) {
  std::string out = (parent.empty() ? "" : parent + " ") + command.name;
  if (!command.options.empty()) out += " [OPTIONS]";
  for (const OptionDoc& one : command.positionals) out += one.required ? " " + one.name : " [" + one.name + "]";
  return command.commands.empty() ? out : out + " COMMAND";
}

std::string reference_markdown(const CommandDoc& program) {
  std::string out = str("# Reference\n\nMade by `rumor help --markdown`, from the program itself.\n\n## Commands\n\n",
                        program.summary, "\n\n");
  for (const CommandDoc& command : program.commands) out += command_section(command, program.name);
  out += str("## Exit status and environment\n\n```\n", program.footer, "\n```\n\n");
  out +=
      "## Run file keys\n\nWritten `key = value` below `[section]`, or given as `--set section.key=value`. A key that "
      "is left out has its default; one without a default is not set then. Keys that are equal on all peers go into "
      "the run id: peers that differ in one are of two runs.\n\n";
  out += keys_table() + "\n## Metrics\n\nAt `/metrics` of a status address, for Prometheus.\n\n" + metrics_table();
  return out;
}

}  // namespace rumor::tools
