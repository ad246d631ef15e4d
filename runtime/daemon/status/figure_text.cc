#include "runtime/daemon/status/figure_text.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "runtime/daemon/status/prometheus_text.h"

namespace rumor::daemon {
namespace {

using nlohmann::ordered_json;
using FigureBlock = FigureSheet::Block;

// A list may be long, such as the tensors of a model, and a scraper keeps a series for each row.
constexpr std::size_t list_samples_max = 256;

ordered_json json_of(const FigureValue& value) {
  return std::visit(
      [](const auto& v) -> ordered_json {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::monostate>) {
          return nullptr;
        } else {
          return v;
        }
      },
      value);
}

ordered_json& object_at(ordered_json& root, std::string_view path) {
  ordered_json* at = &root;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('.'), path.size());
    at = &(*at)[std::string(path.substr(0, end))];
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return *at;
}

void fill(ordered_json& object, const FigureBlock& block, const std::vector<FigureValue>& row) {
  if (object.is_null()) object = ordered_json::object();
  for (std::size_t i = 0; i < row.size(); ++i)
    if (!std::holds_alternative<std::monostate>(row[i]))
      object[std::string(block.figures[i].member)] = json_of(row[i]);
}

std::string dumped(const ordered_json& json, int indent) {
  return json.dump(indent, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string text_of(const FigureValue& value) {
  const std::string* text = std::get_if<std::string>(&value);
  return text ? *text : std::string();
}

double number_of(const FigureValue& value) {
  if (const bool* truth = std::get_if<bool>(&value)) return *truth ? 1 : 0;
  if (const std::uint64_t* count = std::get_if<std::uint64_t>(&value)) return static_cast<double>(*count);
  if (const double* number = std::get_if<double>(&value)) return *number;
  return text_of(value).empty() ? 0 : 1;
}

void add_samples(PrometheusText& out, const Figure& figure, const FigureValue& value, const MetricLabels& labels) {
  if (std::holds_alternative<std::monostate>(value)) return;
  if (figure.metric == FigureMetric::one_of) {
    for (std::string_view kinds = figure.kinds; !kinds.empty();) {
      const std::string kind(kinds.substr(0, kinds.find(' ')));
      out.gauge(figure.name, figure.help, text_of(value) == kind ? 1 : 0, {{"kind", kind}});
      kinds.remove_prefix(std::min(kind.size() + 1, kinds.size()));
    }
    return;
  }
  const double number = number_of(value) * figure.scale;
  if (figure.metric == FigureMetric::counter) out.counter(figure.name, figure.help, number, labels);
  if (figure.metric == FigureMetric::gauge) out.gauge(figure.name, figure.help, number, labels);
}

}  // namespace

std::string figures_json(const FigureSheet& sheet) {
  ordered_json root;
  for (const FigureBlock& block : sheet.blocks()) {
    ordered_json& at = object_at(root, block.group.object);
    if (!block.list) {
      fill(at, block, block.rows[0]);
      continue;
    }
    at = ordered_json::array();
    for (const auto& row : block.rows) fill(at.emplace_back(), block, row);
  }
  return dumped(root, 2);
}

// The samples of one name must follow each other, so each figure goes through all rows.
std::string figures_metrics(const FigureSheet& sheet) {
  PrometheusText out;
  MetricLabels info;
  for (const FigureBlock& block : sheet.blocks())
    for (std::size_t i = 0; i < block.figures.size(); ++i)
      if (block.figures[i].metric == FigureMetric::info)
        info.emplace_back(block.figures[i].name, text_of(block.rows[0][i]));
  if (!info.empty()) out.gauge("rumor_info", info_help, 1, info);
  for (const FigureBlock& block : sheet.blocks())
    for (std::size_t i = 0; i < block.figures.size(); ++i)
      for (std::size_t r = 0; r < std::min(block.rows.size(), list_samples_max); ++r) {
        const auto& row = block.rows[r];
        MetricLabels labels;
        if (block.list) labels.emplace_back(block.group.key, text_of(row[0]));
        add_samples(out, block.figures[i], row[i], labels);
      }
  return out.text();
}

std::string figures_description(const FigureSheet& sheet) {
  static constexpr const char* forms[] = {"hidden", "text",  "line",  "id",   "equal",   "count", "decimal",
                                          "small",  "share", "bytes", "flow", "seconds", "ms",    "fault"};
  static_assert(std::size(forms) == static_cast<std::size_t>(Form::fault) + 1);
  ordered_json blocks = ordered_json::array();
  for (const FigureBlock& block : sheet.blocks()) {
    ordered_json figures = ordered_json::array();
    for (const Figure& figure : block.figures)
      if (figure.form != Form::hidden)
        figures.push_back({{"member", figure.member},
                           {"label", figure.label},
                           {"form", forms[static_cast<std::size_t>(figure.form)]},
                           {"help", figure.help}});
    if (figures.empty()) continue;
    blocks.push_back({{"object", block.group.object},
                      {"title", block.group.title},
                      {"list", block.list},
                      {"note", block.group.note},
                      {"figures", figures}});
  }
  return dumped(blocks, -1);
}

}  // namespace rumor::daemon
