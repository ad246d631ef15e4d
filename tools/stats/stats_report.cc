#include "tools/stats/stats_report.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::tools {
namespace {

using compress::LayoutBytes;
using compress::Statistics;
using Json = nlohmann::ordered_json;

std::vector<std::pair<const char*, std::uint64_t>> named(const LayoutBytes& layouts) {
  return {{"rumor", layouts.rumor},
          {"rumor_adapt", layouts.rumor_adapt},
          {"rumor_link", layouts.rumor_link},
          {"u32", layouts.u32},
          {"u16_chunk", layouts.u16_chunk},
          {"packed12_chunk", layouts.packed12_chunk},
          {"leb128_gaps", layouts.leb128_gaps},
          {"rice_gaps", layouts.rice_gaps},
          {"zstd19_gaps", layouts.zstd19_gaps}};
}

std::string aligned(const std::string& text, int width, bool left = false) {
  std::ostringstream out;
  out << (left ? std::left : std::right) << std::setw(width) << text;
  return out.str();
}

std::string over_bound(double bits, double bound) {
  return bound > 0 ? fixed(bits / bound, 4) + " x" : "-";
}

void put_layouts(std::ostringstream& out, const LayoutBytes& layouts) {
  out << "\nlayout                  bytes   against this one\n";
  for (const auto& [name, bytes] : named(layouts)) {
    const double times =
        layouts.rumor == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(layouts.rumor);
    out << aligned(name, 16, true) << aligned(str(bytes), 13) << aligned(fixed(times, 3), 17) << " x\n";
  }
}

// The mode that most segments are in.
std::string usual_mode(const compress::ModeCounts& modes) {
  std::pair<const char*, std::uint64_t> most{"-", 0};
  for (const auto& mode : modes.named())
    if (mode.second > most.second) most = mode;
  return most.first;
}

void put_modes(std::ostringstream& out, const compress::ModeCounts& modes) {
  out << "\nmodes on a slow link";
  const char* separator = "  ";
  for (const auto& [name, count] : modes.named()) {
    if (count == 0) continue;
    out << separator << name << " " << count;
    separator = ", ";
  }
  out << " (segments)\n";
}

// The slowest to arrive first.
void put_peers(std::ostringstream& out, std::vector<PeerLag> peers) {
  constexpr std::size_t shown_max = 8;
  std::sort(peers.begin(), peers.end(), [](const PeerLag& a, const PeerLag& b) { return a.mean > b.mean; });
  for (std::size_t p = 0; p < std::min(peers.size(), shown_max); ++p)
    out << "  from " << peers[p].node.substr(0, 8) << "     " << fixed(peers[p].mean, 1) << " lately, " << peers[p].max
        << " at most, " << peers[p].updates << " updates\n";
  if (peers.size() > shown_max) out << "  and " << peers.size() - shown_max << " peers whose updates come sooner\n";
}

void put_tensors(std::ostringstream& out, const std::vector<TensorReport>& tensors) {
  std::size_t longest = 6;
  for (const TensorReport& tensor : tensors) longest = std::max(longest, tensor.name.size());
  const int name_width = static_cast<int>(std::min<std::size_t>(longest, 60));
  out << "\n"
      << aligned("tensor", name_width, true)
      << "      params     entries   density %   bits/entry   x bound   mode    threshold   residual rms"
      << "   residual age\n";
  for (const TensorReport& tensor : tensors)
    out << aligned(tensor.name, name_width, true) << aligned(str(tensor.params), 12)
        << aligned(str(tensor.entries), 12) << aligned(fixed(100 * tensor.density, 4), 12)
        << aligned(fixed(tensor.bits_per_entry, 2), 13)
        << aligned(tensor.bound_bits_per_entry > 0
                       ? fixed(tensor.bits_per_entry / tensor.bound_bits_per_entry, 3)
                       : "-",
                   10)
        << aligned(usual_mode(tensor.modes), 7) << aligned(tensor.threshold > 0 ? fixed(tensor.threshold, 7) : "-", 13)
        << aligned(tensor.residual_rms > 0 ? fixed(tensor.residual_rms, 8) : "-", 15)
        << aligned(tensor.residual_age ? fixed(*tensor.residual_age, 1) : "-", 15) << "\n";
}

Json json_of(const TensorReport& tensor) {
  Json object{{"name", tensor.name},
              {"params", tensor.params},
              {"entries", tensor.entries},
              {"threshold", tensor.threshold},
              {"density", tensor.density},
              {"bits_per_entry", tensor.bits_per_entry},
              {"bound_bits_per_entry", tensor.bound_bits_per_entry},
              {"residual_rms", tensor.residual_rms}};
  for (const auto& [name, count] : tensor.modes.named()) object["modes"][name] = count;
  if (tensor.residual_age) object["residual_age"] = *tensor.residual_age;
  return object;
}

Json json_of(const std::vector<Bin>& bins) {
  Json list = Json::array();
  for (const Bin& bin : bins) {
    Json one{{"share", bin.share}};
    if (std::isfinite(bin.limit)) one["below"] = bin.limit;
    list.push_back(std::move(one));
  }
  return list;
}

Json json_of(const Staleness& staleness) {
  Json peers = Json::array();
  for (const PeerLag& peer : staleness.peers)
    peers.push_back({{"node_id", peer.node}, {"updates", peer.updates}, {"mean", peer.mean}, {"max", peer.max}});
  return {{"mean", staleness.mean}, {"max", staleness.max}, {"rate_factor", staleness.rate_factor},
          {"peers", peers}};
}

Json json_of(const compress::UpdateFigures& update) {
  return {{"entries", update.entries},
          {"threshold", update.threshold},
          {"payload_bytes", update.payload_bytes},
          {"adapt_bytes", update.adapt_bytes},
          {"link_bytes", update.link_bytes},
          {"bound_bytes", update.bound_bits / 8}};
}

// The mass that one update takes out of the residual of a tensor, on the average.
double mass_per_update(const compress::TensorTotals& totals, std::uint64_t updates) {
  return updates == 0 ? 0 : totals.mass / static_cast<double>(updates);
}

}  // namespace

std::string StatsReport::to_json() const {
  Json json{{"source", source},
            {"updates", updates},
            {"params", params},
            {"entries", entries},
            {"density", density},
            {"bits_per_entry", bits_per_entry},
            {"bound_bits_per_entry", bound_bits_per_entry},
            {"ratio", ratio},
            {"update_bytes_mean", update_bytes_mean},
            {"round_trip", round_trip_exact ? "exact" : "broken"}};
  if (layouts)
    for (const auto& [name, bytes] : named(*layouts)) json["layouts"][name] = bytes;
  for (const auto& [name, count] : modes.named()) json["modes"][name] = count;
  if (residual_age) json["residual_age"] = *residual_age;
  if (staleness) json["staleness"] = json_of(*staleness);
  if (!guarantee.empty()) json["guarantee"] = guarantee;
  if (!residual_sizes.empty()) json["residual_sizes"] = json_of(residual_sizes);
  if (!residual_ages.empty()) json["residual_ages"] = json_of(residual_ages);
  json["tensors"] = Json::array();
  for (const TensorReport& tensor : tensors) json["tensors"].push_back(json_of(tensor));
  json["history"] = Json::array();
  for (const compress::UpdateFigures& update : history) json["history"].push_back(json_of(update));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string StatsReport::to_table() const {
  std::ostringstream out;
  out << source << ": " << updates << " updates of a model of " << params << " parameters\n\n"
      << "entries             " << entries << " (density " << fixed(100 * density, 4) << " %)\n"
      << "bytes per update    " << fixed(update_bytes_mean, 1) << "\n"
      << "compression         " << fixed(ratio, 1) << " times smaller than 32-bit floats\n"
      << "bits per entry      " << fixed(bits_per_entry, 3) << ", sign included\n"
      << "bound               " << fixed(bound_bits_per_entry, 3) << " for independent positions ("
      << over_bound(bits_per_entry, bound_bits_per_entry) << ")\n";
  if (residual_age)
    out << "residual age        " << fixed(*residual_age, 1) << " updates: how long a change waits to be sent\n";
  if (!guarantee.empty()) out << "replicas            " << guarantee << "\n";
  if (staleness)
    out << "staleness           " << fixed(staleness->mean, 1) << " own updates between an update's making and "
        << "its arrival here, " << staleness->max << " at most\n";
  if (staleness && staleness->rate_factor < 1)
    out << "learning rate       lowered to " << fixed(staleness->rate_factor * 100, 0) << " % for that\n";
  if (staleness) put_peers(out, staleness->peers);
  out << "round trip          " << (round_trip_exact ? "exact" : "BROKEN, please report it") << "\n";
  if (layouts) put_layouts(out, *layouts);
  if (layouts) put_modes(out, modes);
  put_tensors(out, tensors);
  return out.str();
}

StatsReport report_of(const std::string& source, const ParamLayout& layout, const Statistics& statistics,
                      bool with_layouts) {
  StatsReport report;
  report.source = source;
  report.updates = statistics.updates();
  report.params = layout.params();
  report.entries = statistics.entries();
  report.density = statistics.density();
  report.bits_per_entry = statistics.bits_per_entry();
  report.bound_bits_per_entry = statistics.bound_bits_per_entry();
  report.ratio = statistics.ratio();
  report.update_bytes_mean = statistics.update_bytes_mean();
  report.round_trip_exact = statistics.round_trip_exact();
  report.modes = statistics.modes();
  report.history = statistics.history();
  if (with_layouts) report.layouts = statistics.layouts();
  for (std::size_t t = 0; t < layout.tensors().size(); ++t) {
    const TensorInfo& tensor = layout.tensors()[t];
    const compress::TensorTotals& totals = statistics.tensors()[t];
    const double places = static_cast<double>(statistics.updates()) * tensor.size;
    const double entries = static_cast<double>(totals.entries);
    TensorReport& row = report.tensors.emplace_back();
    row.name = tensor.name;
    row.params = tensor.size;
    row.entries = totals.entries;
    row.modes = totals.modes;
    row.threshold = totals.threshold;
    row.density = places > 0 ? entries / places : 0;
    row.bits_per_entry = totals.entries > 0 ? static_cast<double>(totals.bits) / entries : 0;
    row.bound_bits_per_entry = totals.entries > 0 ? totals.bound_bits / entries : 0;
  }
  return report;
}

void add_residual(StatsReport& report, const ParamLayout& layout, const Statistics& statistics,
                  std::span<const float> residual) {
  RUMOR_CHECK(residual.size() == layout.params() && report.tensors.size() == layout.tensors().size());
  constexpr int octaves = 6;  // below 1/32, up to 1/16, ... up to 1, above
  std::vector<std::uint64_t> counts(octaves + 1, 0);
  const double threshold = report.history.empty() ? 0 : report.history.back().threshold;
  double waiting = 0, leaving = 0;
  for (std::size_t t = 0; t < layout.tensors().size(); ++t) {
    const TensorInfo& tensor = layout.tensors()[t];
    double squares = 0, sum = 0;
    for (const float value : residual.subspan(tensor.offset, tensor.size)) {
      const double size = std::abs(static_cast<double>(value));
      squares += size * size;
      sum += size;
      if (threshold > 0)
        ++counts[static_cast<std::size_t>(std::clamp(octaves + std::ilogb(size / threshold + 1e-9), 0, octaves))];
    }
    TensorReport& row = report.tensors[t];
    row.residual_rms = std::sqrt(squares / tensor.size);
    const double mass = mass_per_update(statistics.tensors()[t], report.updates);
    if (mass > 0) row.residual_age = sum / mass;
    waiting += sum;
    leaving += mass;
  }
  if (leaving > 0) report.residual_age = waiting / leaving;
  if (threshold <= 0) return;
  for (int i = 0; i <= octaves; ++i)
    report.residual_sizes.push_back(
        {i == octaves ? std::numeric_limits<double>::infinity() : std::ldexp(1.0, i + 1 - octaves),
         static_cast<double>(counts[static_cast<std::size_t>(i)]) / layout.params()});
}

}  // namespace rumor::tools
