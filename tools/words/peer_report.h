// PeerReport: what a running peer says of itself, asked over its status address, and as text for a terminal.
//
// Nothing in an answer is trusted: what is missing or of another type is a dash, and texts lose what a terminal would
// act upon.
//
// Thread: plain functions; ask_peer() blocks, two seconds at most.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace rumor::tools {

struct NeighbourReport {
  std::string node_id, address;
  bool same_bits = false, dialled_by_us = false;
  std::optional<double> behind, staleness, round_trip_ms, sent_bytes, received_bytes;  // behind: updates
};

struct PeerReport {
  std::string run, run_id, node_id, phase, waiting_for, limit_kind, limit, digest, exchange, guarantee,
      storage_trouble, port_mapping, version, reached_by;
  std::optional<double> samples, samples_planned, loss, train_loss, accuracy, live_peers, members, updates, ratio,
      sent_bytes, received_bytes, dense_bytes, uptime_seconds, unix_seconds, reached_seconds_ago,
      asked_seconds_ago;  // reached: dialled by another peer; asked: neighbours, to dial this one
  bool same_bits = false;
  std::vector<NeighbourReport> neighbours;
};

// Errors: as daemon::http_get; Errc::io (the answer is no status).
Result<PeerReport> ask_peer(const std::string& address, const std::string& token);
Result<PeerReport> parse_peer_report(const std::string& json, const std::string& address);

// Figures and neighbours, in lines of at most 80 columns. `rates`: bytes a second sent and received, where known.
std::string report_text(const PeerReport& report, std::optional<double> sent_rate = {},
                        std::optional<double> received_rate = {});

// "1,234", "1.2 MB", "38 %"; a dash where there is nothing.
std::string count_text(std::optional<double> value);
std::string bytes_text(std::optional<double> value);
std::string percent_text(std::optional<double> share, int digits);
std::optional<double> progress_of(const PeerReport& report);
// Cut to `width` columns of text, or filled up with blanks; right: blanks before.
std::string column(const std::string& text, std::size_t width, bool right = false);

}  // namespace rumor::tools
