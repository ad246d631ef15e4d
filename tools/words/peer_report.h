// PeerReport: the status of a running peer, fetched from its status address, and its figures as text for a terminal.
//
// Which figures are shown, and how, is in their rows (runtime/base/figures.h). Nothing in an answer is trusted: a value
// that is missing or of another type is not shown, and texts lose the characters that a terminal would act upon.
//
// Thread: plain functions; ask_peer() blocks, two seconds at most.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/result.h"
#include "runtime/daemon/status/figure_text.h"

namespace rumor::tools {

class PeerReport {
 public:
  // Errors: Errc::io (the answer is no status).
  static Result<PeerReport> parse(const std::string& body, const std::string& address);

  // The value at a path such as "traffic.sent_bytes"; none: a dash in `rumor top`.
  std::optional<double> number(std::string_view path) const;
  std::string text(std::string_view path) const;

  // The figures that `sheet` describes, in lines of at most 80 columns. `before`: an earlier report of the peer,
  // `seconds` older; null: none. It gives bytes their speed.
  std::string lines(const FigureSheet& sheet, const PeerReport* before = nullptr, double seconds = 0) const;
  // The cells of `rumor top`, below the headings of top_headings().
  std::string top_cells(const FigureSheet& sheet, const PeerReport* before = nullptr, double seconds = 0) const;

 private:
  struct Status;
  explicit PeerReport(std::shared_ptr<const Status> status) : status_(std::move(status)) {}
  std::shared_ptr<const Status> status_;
};

std::string top_headings(const FigureSheet& sheet);

// Errors: as daemon::http_get and PeerReport::parse.
Result<PeerReport> ask_peer(const std::string& address, const std::string& token);

// "1,234", "1.2 MB"; a dash where there is nothing.
std::string count_text(std::optional<double> value);
std::string bytes_text(std::optional<double> value);
// Cut to `width` columns of text, or filled up with blanks; right: blanks before.
std::string column(const std::string& text, std::size_t width, bool right = false);

}  // namespace rumor::tools
