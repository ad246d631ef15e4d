#include "tools/words/peer_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/base/text.h"
#include "runtime/daemon/status/http_get.h"

namespace rumor::tools {
namespace {

using nlohmann::json;
using FigureBlock = FigureSheet::Block;

constexpr std::size_t line_columns = 80, heading_columns = 11, list_rows_max = 4096;

// An empty path: the object itself. Null: there is no such member.
const json* at_path(const json& object, std::string_view path) {
  const json* at = &object;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('.'), path.size());
    if (!at->is_object()) return nullptr;
    const auto member = at->find(std::string(path.substr(0, end)));
    if (member == at->end()) return nullptr;
    at = &*member;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return at;
}

std::string printable(const json& value) {
  if (!value.is_string()) return {};
  std::string out = value.get<std::string>();
  std::erase_if(out, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
  return out;
}

std::string scientific(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", value);
  return text;
}

std::string duration(double seconds) {
  if (seconds < 90) return fixed(seconds, 0) + " s";
  if (seconds < 5400) return fixed(seconds / 60, 0) + " min";
  if (seconds < 172'800) return fixed(seconds / 3600, 1) + " h";
  return fixed(seconds / 86'400, 1) + " days";
}

std::string number_text(Form form, double value) {
  const double size = std::fabs(value);
  switch (form) {
    case Form::fault: return value > 0 ? count_text(value) : "";
    case Form::small: return value == 0 ? "0" : size < 0.01 ? scientific(value) : fixed(value, 3);
    case Form::decimal: return size >= 1000 ? count_text(value) : fixed(value, 3);
    case Form::share: return fixed(value * 100, size >= 0.01 || size == 0 ? 1 : 3) + " %";
    case Form::bytes:
    case Form::flow: return bytes_text(value);
    case Form::seconds: return duration(value);
    case Form::ms: return fixed(value, 1) + " ms";
    default: return count_text(value);
  }
}

// Empty: the figure is not shown.
std::string value_text(Form form, const json* value) {
  if (value == nullptr) return {};
  if (value->is_boolean()) return value->get<bool>() ? "yes" : form == Form::equal ? "under way" : "no";
  if (value->is_number()) return std::isfinite(value->get<double>()) ? number_text(form, value->get<double>()) : "";
  const std::string text = printable(*value);
  return form == Form::id ? text.substr(0, 8) : text;
}

bool is_text(Form form) {
  return form == Form::text || form == Form::id || form == Form::equal || form == Form::hidden;
}

std::string cell(const Figure& figure, const std::string& text) {
  return column(text, static_cast<std::size_t>(figure.width), !is_text(figure.form));
}

// A blank at which no line ends: between the label and the value of a figure.
constexpr char hard_blank = '\x1f';

// Words in lines of 80 columns, the first behind its heading, all at one column.
std::string paragraph(std::string_view heading, const std::string& words) {
  std::string out, line = column(std::string(heading), heading_columns);
  std::size_t at = 0;
  while (at < words.size()) {
    const std::size_t end = std::min(words.find(' ', at), words.size());
    const std::string word = words.substr(at, end - at);
    if (line.size() + word.size() >= line_columns && line.size() > heading_columns) {
      out += line + "\n";
      line = std::string(heading_columns, ' ');
    }
    line += (line.size() > heading_columns ? " " : "") + word;
    at = end + 1;
  }
  out += line + "\n";
  std::replace(out.begin(), out.end(), hard_blank, ' ');
  return out;
}

std::string path_of(const FigureGroup& group, const Figure& figure) {
  return str(group.object, group.object.empty() ? "" : ".", figure.member);
}

// The columns for the terminal, without those of faults that no item has.
std::vector<const Figure*> columns_of(const FigureBlock& block, const json& items) {
  std::vector<const Figure*> columns;
  for (const Figure& figure : block.figures) {
    const bool shown = figure.form != Form::fault || std::any_of(items.begin(), items.end(), [&](const json& item) {
                         return !value_text(figure.form, at_path(item, figure.member)).empty();
                       });
    if (figure.width > 0 && shown) columns.push_back(&figure);
  }
  return columns;
}

std::string list_lines(const FigureBlock& block, const json* items) {
  if (!items || !items->is_array() || items->empty()) return {};
  const std::vector<const Figure*> columns = columns_of(block, *items);
  std::string headings, out;
  for (const Figure* figure : columns)
    headings += (headings.empty() ? "" : " ") + cell(*figure, std::string(figure->label));
  if (headings.empty()) return {};
  for (std::size_t i = 0; i < std::min(items->size(), list_rows_max); ++i) {
    std::string line;
    for (const Figure* figure : columns) {
      const std::string text = value_text(figure->form, at_path((*items)[i], figure->member));
      line += (line.empty() ? "" : " ") + cell(*figure, text.empty() ? "-" : text);
    }
    out += line + "\n";
  }
  return str("\n", headings, "\n", out, "\n");
}

// Bytes a second; nothing where the peer started anew in between.
std::string speed_text(const PeerReport& now, const PeerReport* before, const std::string& path, double seconds) {
  if (before == nullptr || seconds <= 0) return {};
  const auto a = before->number(path), b = now.number(path);
  return a && b && *b >= *a ? bytes_text((*b - *a) / seconds) + "/s" : "";
}

}  // namespace

std::string column(const std::string& text, std::size_t width, bool right) {
  const std::string cut = text.substr(0, width);
  const std::string blanks(width - cut.size(), ' ');
  return right ? blanks + cut : cut + blanks;
}

std::string count_text(std::optional<double> value) {
  if (!value || !std::isfinite(*value) || std::fabs(*value) > 1e18) return "-";
  std::string digits = fixed(*value, 0);
  for (std::size_t at = digits.size(); at > 3 && digits[at - 4] != '-'; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string bytes_text(std::optional<double> value) {
  if (!value || !std::isfinite(*value)) return "-";
  static constexpr const char* units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  double left = *value;
  std::size_t unit = 0;
  for (; left >= 1000 && unit + 1 < std::size(units); ++unit) left /= 1000;
  return str(fixed(left, unit > 0 && left < 100 ? 1 : 0), " ", units[unit]);
}

struct PeerReport::Status {
  json object;
};

Result<PeerReport> PeerReport::parse(const std::string& body, const std::string& address) {
  PeerReport report(std::make_shared<const Status>(Status{json::parse(body, nullptr, false)}));
  if (report.text("run_id").empty() || report.text("node_id").empty())
    return Error{Errc::io, address + " answers, but not as a peer does; is it the status address of one?"};
  return report;
}

std::optional<double> PeerReport::number(std::string_view path) const {
  const json* value = at_path(status_->object, path);
  return value && value->is_number() ? std::optional(value->get<double>()) : std::nullopt;
}

std::string PeerReport::text(std::string_view path) const {
  const json* value = at_path(status_->object, path);
  return value ? printable(*value) : std::string();
}

std::string PeerReport::lines(const FigureSheet& sheet, const PeerReport* before, double seconds) const {
  std::string out = str(text("run"), ": ", text("phase"), ", peer ", text("node_id").substr(0, 16), " in run ",
                        text("run_id").substr(0, 16));
  out = out.substr(0, line_columns) + "\n\n";
  const std::vector<FigureBlock>& blocks = sheet.blocks();
  std::string words;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const FigureGroup& group = blocks[b].group;
    if (blocks[b].list) {
      const std::string list = list_lines(blocks[b], at_path(status_->object, group.object));
      out += list.substr(list.empty() || !out.ends_with("\n\n") ? 0 : 1);  // one empty line between two lists
      continue;
    }
    for (const Figure& figure : blocks[b].figures) {
      const std::string path = path_of(group, figure);
      const std::string value = value_text(figure.form, at_path(status_->object, path));
      if (figure.form == Form::hidden || value.empty()) continue;
      if (figure.form == Form::line) {
        out += paragraph(figure.label, value);
        continue;
      }
      const std::string speed = figure.form == Form::flow ? speed_text(*this, before, path, seconds) : "";
      std::string piece = str(figure.label, " ", value, speed.empty() ? "" : " (" + speed + ")");
      std::replace(piece.begin(), piece.end(), ' ', hard_blank);
      words += (words.empty() ? "" : ", ") + piece;
    }
    const bool joined = b + 1 < blocks.size() && !blocks[b + 1].list && blocks[b + 1].group.title == group.title;
    if (!joined && !words.empty()) out += paragraph(group.title, std::exchange(words, {}));
  }
  return out;
}

std::string PeerReport::top_cells(const FigureSheet& sheet, const PeerReport* before, double seconds) const {
  std::string out;
  for (const FigureBlock& block : sheet.blocks())
    for (const Figure& figure : block.figures) {
      if (block.list || figure.width == 0) continue;
      const std::string path = path_of(block.group, figure);
      const std::string text = figure.form == Form::flow ? speed_text(*this, before, path, seconds)
                                                         : value_text(figure.form, at_path(status_->object, path));
      out += " " + cell(figure, text.empty() ? "-" : text);
    }
  return out;
}

std::string top_headings(const FigureSheet& sheet) {
  std::string out;
  for (const FigureBlock& block : sheet.blocks())
    for (const Figure& figure : block.figures)
      if (!block.list && figure.width > 0) out += " " + cell(figure, std::string(figure.label));
  return out;
}

Result<PeerReport> ask_peer(const std::string& address, const std::string& token) {
  const auto body = daemon::http_get(address, "/status", token);
  if (!body) return body.error();
  return PeerReport::parse(*body, address);
}

}  // namespace rumor::tools
