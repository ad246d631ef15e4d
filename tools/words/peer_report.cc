#include "tools/words/peer_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/base/text.h"
#include "runtime/daemon/status/http_get.h"

namespace rumor::tools {
namespace {

using nlohmann::json;
using Figure = std::optional<double>;

constexpr std::size_t columns = 80, neighbours_max = 4096;

const json* member(const json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto at = object.find(name);
  return at == object.end() ? nullptr : &*at;
}

Figure number(const json& object, const char* name) {
  const json* value = member(object, name);
  return value && value->is_number() ? Figure(value->get<double>()) : std::nullopt;
}

// Without control characters: a status may come from a stranger, and a terminal obeys them.
std::string text(const json& object, const char* name) {
  const json* value = member(object, name);
  if (!value || !value->is_string()) return {};
  std::string out = value->get<std::string>();
  std::erase_if(out, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
  return out;
}

bool truth(const json& object, const char* name) {
  const json* value = member(object, name);
  return value && value->is_boolean() && value->get<bool>();
}

// Of a part of the status that may be missing.
const json& part(const json& object, const char* name) {
  static const json nothing;
  const json* value = member(object, name);
  return value ? *value : nothing;
}

std::vector<NeighbourReport> neighbours_of(const json& status) {
  std::vector<NeighbourReport> list;
  const Figure updates = number(status, "updates");
  for (const json& peer : part(status, "peers")) {
    if (list.size() == neighbours_max) break;
    NeighbourReport one{.node_id = text(peer, "node_id"), .address = text(peer, "address")};
    one.same_bits = truth(peer, "digest_equal");
    one.dialled_by_us = truth(peer, "dialled_by_us");
    if (const Figure theirs = number(peer, "updates"); theirs && updates)
      one.behind = std::max(0.0, *updates - *theirs);
    one.round_trip_ms = number(peer, "round_trip_ms");
    one.sent_bytes = number(peer, "sent_bytes");
    one.received_bytes = number(peer, "received_bytes");
    for (const json& stale : part(part(part(status, "compression"), "staleness"), "peers"))
      if (text(stale, "node_id") == one.node_id) one.staleness = number(stale, "mean");
    list.push_back(std::move(one));
  }
  return list;
}

std::string decimal(Figure value, int digits, const char* unit = "") {
  return value ? fixed(*value, digits) + unit : "-";
}

// Words in lines of at most `columns`, the first after `label`, all at the same column.
std::string labelled(const std::string& label, const std::string& words) {
  std::string out, line = column(label, 11);
  std::size_t at = 0;
  while (at < words.size()) {
    const std::size_t end = std::min(words.find(' ', at), words.size());
    const std::string word = words.substr(at, end - at);
    if (line.size() + word.size() >= columns && line.size() > 11) {
      out += line + "\n";
      line = std::string(11, ' ');
    }
    line += (line.size() > 11 ? " " : "") + word;
    at = end + 1;
  }
  return out + line + "\n";
}

std::string rate(Figure bytes) {
  return bytes ? bytes_text(bytes) + "/s" : "";
}

std::string neighbour_table(const PeerReport& r) {
  std::string out =
      str("\n", column("peer", 9), column("address", 21), column("same bits", 10), column("behind", 8, true),
          column("stale", 7, true), column("ms", 7, true), column("sent", 9, true), column("received", 9, true), "\n");
  for (const NeighbourReport& n : r.neighbours)
    out += str(column(n.node_id, 8), " ", column(n.address, 20), " ", column(n.same_bits ? "yes" : "under way", 10),
               column(count_text(n.behind), 8, true), column(decimal(n.staleness, 1), 7, true),
               column(decimal(n.round_trip_ms, 1), 7, true), column(bytes_text(n.sent_bytes), 9, true),
               column(bytes_text(n.received_bytes), 9, true), "\n");
  return out;
}

}  // namespace

std::string column(const std::string& text, std::size_t width, bool right) {
  const std::string cut = text.substr(0, width);
  const std::string blanks(width - cut.size(), ' ');
  return right ? blanks + cut : cut + blanks;
}

std::string count_text(Figure value) {
  if (!value || !std::isfinite(*value) || std::fabs(*value) > 1e18) return "-";
  std::string digits = fixed(*value, 0);
  for (std::size_t at = digits.size(); at > 3 && digits[at - 4] != '-'; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string bytes_text(Figure value) {
  if (!value) return "-";
  static constexpr const char* units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  double left = *value;
  std::size_t unit = 0;
  for (; left >= 1000 && unit + 1 < std::size(units); ++unit) left /= 1000;
  return str(fixed(left, unit > 0 && left < 100 ? 1 : 0), " ", units[unit]);
}

std::string percent_text(Figure share, int digits) {
  return share ? fixed(*share * 100, digits) + " %" : "-";
}

Figure progress_of(const PeerReport& r) {
  if (!r.samples || !r.samples_planned || *r.samples_planned <= 0) return {};
  return std::min(1.0, *r.samples / *r.samples_planned);
}

Result<PeerReport> parse_peer_report(const std::string& body, const std::string& address) {
  const json status = json::parse(body, nullptr, false);
  PeerReport r{.run = text(status, "run"), .run_id = text(status, "run_id"), .node_id = text(status, "node_id")};
  if (r.run_id.empty() || r.node_id.empty())
    return Error{Errc::io, address + " answers, but not as a peer does; is it the status address of one?"};
  r.phase = text(status, "phase");
  r.waiting_for = text(status, "waiting_for");
  r.limit_kind = text(part(status, "limit"), "kind");
  r.limit = text(part(status, "limit"), "text");
  r.digest = text(status, "digest");
  r.exchange = text(status, "exchange");
  r.guarantee = text(status, "guarantee");
  r.storage_trouble = text(status, "storage_trouble");
  r.port_mapping = text(status, "port_mapping");
  r.version = text(status, "version");
  r.reached_by = text(part(status, "reach"), "by");
  r.same_bits = truth(status, "digests_equal");
  const json& traffic = part(status, "traffic");
  const struct {
    Figure& to;
    const json& from;
    const char* name;
  } figures[] = {{r.samples, status, "samples"},
                 {r.samples_planned, status, "samples_planned"},
                 {r.loss, status, "loss"},
                 {r.train_loss, status, "train_loss"},
                 {r.accuracy, status, "accuracy"},
                 {r.live_peers, status, "live_peers"},
                 {r.members, status, "members"},
                 {r.updates, status, "updates"},
                 {r.ratio, traffic, "ratio"},
                 {r.sent_bytes, traffic, "sent_bytes"},
                 {r.dense_bytes, traffic, "dense_bytes"},
                 {r.received_bytes, traffic, "received_bytes"},
                 {r.reached_seconds_ago, part(status, "reach"), "seconds_ago"},
                 {r.asked_seconds_ago, part(status, "reach"), "asked_seconds_ago"},
                 {r.uptime_seconds, status, "uptime_s"},
                 {r.unix_seconds, status, "unix_s"}};
  for (const auto& figure : figures) figure.to = number(figure.from, figure.name);
  r.neighbours = neighbours_of(status);
  return r;
}

Result<PeerReport> ask_peer(const std::string& address, const std::string& token) {
  const auto body = daemon::http_get(address, "/status", token);
  if (!body) return body.error();
  return parse_peer_report(*body, address);
}

std::string report_text(const PeerReport& r, Figure sent_rate, Figure received_rate) {
  const bool own_models = keeps_own_models(r.exchange);
  std::string out = str(r.run, ": ", r.phase, ", ", percent_text(progress_of(r), 0), " (", count_text(r.samples),
                        " of ", count_text(r.samples_planned), " samples)\n");
  out += str("peer ", r.node_id.substr(0, 16), " in run ", r.run_id.substr(0, 16), "\n\n");
  out += labelled("limit", r.limit);
  if (!r.waiting_for.empty()) out += labelled("waits for", r.waiting_for);
  if (!r.storage_trouble.empty()) out += labelled("disk", r.storage_trouble);
  out += labelled("learning", str("loss ", decimal(r.loss, 4), ", accuracy ", percent_text(r.accuracy, 2),
                                  ", own batches ", decimal(r.train_loss, 4)));
  out += labelled("peers",
                  str(count_text(r.live_peers), " training, ", r.neighbours.size(),
                      r.neighbours.size() == 1 ? " neighbour, " : " neighbours, ", count_text(r.members), " known, ",
                      r.neighbours.empty() ? "alone" : own_models ? "copies " : "bits ",
                      r.neighbours.empty() ? "" : r.same_bits ? "equal" : "under way"));
  std::string traffic = str("sent ", bytes_text(r.sent_bytes), ", received ", bytes_text(r.received_bytes));
  if (sent_rate) traffic += str(" (now ", rate(sent_rate), " out, ", rate(received_rate), " in)");
  out += labelled("traffic", traffic + str("; own updates dense: ", bytes_text(r.dense_bytes), ", ",
                                           count_text(r.ratio), " times their payload"));
  out += labelled(own_models ? "public copy" : "replica", str(count_text(r.updates), " updates, digest ", r.digest));
  if (own_models) out += labelled("models", r.guarantee);
  return r.neighbours.empty() ? out : out + neighbour_table(r);
}

}  // namespace rumor::tools
