#include "tools/stats_file.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "compress/compressor.h"
#include "runtime/base/text.h"
#include "tools/update_file.h"

namespace rumor::tools {
namespace {

using compress::Compressor;
using compress::CompressorStats;
using compress::LayoutBytes;
using compress::SparseUpdate;
using compress::Statistics;

std::vector<std::pair<const char*, std::uint64_t>> named(const LayoutBytes& layouts) {
  return {{"rumor", layouts.rumor},
          {"u32", layouts.u32},
          {"u16_chunk", layouts.u16_chunk},
          {"packed12_chunk", layouts.packed12_chunk},
          {"leb128_gaps", layouts.leb128_gaps},
          {"rice_gaps", layouts.rice_gaps},
          {"zstd19_gaps", layouts.zstd19_gaps}};
}

// All steps of a dense file with a given number of entries each.
Result<Statistics> run_dense(const UpdateFile& file, double density, bool with_layouts) {
  Statistics statistics(file.layout());
  Compressor compressor(file.layout(), {.density = density});
  SparseUpdate update;
  CompressorStats last;
  for (std::size_t step = 0; step < file.steps(); ++step) {
    if (Result<void> absorbed = compressor.absorb(file.change(step), update); !absorbed)
      return Error{absorbed.error().code, str("step ", file.number(step), ": ", absorbed.error().text)};
    // Asking for the threshold costs a pass over the residual.
    last = compressor.stats();
    statistics.add(update, last.threshold, with_layouts);
  }
  for (std::size_t t = 0; t < last.tensors.size(); ++t)
    statistics.tensors()[t].residual_rms = last.tensors[t].residual_rms;
  return statistics;
}

Result<Statistics> run_sparse(const UpdateFile& file) {
  Statistics statistics(file.layout());
  for (std::size_t step = 0; step < file.steps(); ++step) {
    const Result<SparseUpdate> update = file.update(step);
    if (!update) return update.error();
    statistics.add(*update, 0, true);
  }
  return statistics;
}

double mean_bytes(const Statistics& statistics) {
  return static_cast<double>(statistics.payload_bytes()) /
         static_cast<double>(std::max<std::uint64_t>(1, statistics.updates()));
}

// The density whose updates are as large as may be: between `fits` and `too_many` entries, which close in on
// each other. The next try follows the measured bytes per entry, and takes the middle when that does not
// close in fast enough.
Result<double> density_of_budget(const UpdateFile& file, std::uint64_t budget_bytes) {
  const std::uint64_t params = file.layout().params();
  const auto density_of = [&](std::uint64_t entries) {
    return static_cast<double>(entries) / static_cast<double>(params);
  };
  std::uint64_t fits = 0, too_many = params + 1;
  const double first_guess = static_cast<double>(budget_bytes) * 8 / 12;
  std::uint64_t entries =
      static_cast<std::uint64_t>(std::clamp(first_guess, 1.0, static_cast<double>(params)));
  for (int run = 0; fits + 1 < too_many && run < 64; ++run) {
    const Result<Statistics> statistics = run_dense(file, density_of(entries), false);
    if (!statistics) return statistics.error();
    const double bytes = mean_bytes(*statistics);
    (bytes <= static_cast<double>(budget_bytes) ? fits : too_many) = entries;
    if (fits + 1 >= too_many) break;
    const double suggested = static_cast<double>(entries) * static_cast<double>(budget_bytes) / bytes;
    const std::uint64_t middle = fits + (too_many - fits) / 2;
    const bool trust = run < 8 && run % 3 != 2;
    entries = trust ? static_cast<std::uint64_t>(std::min(suggested, static_cast<double>(params))) : middle;
    entries = std::clamp(entries, fits + 1, too_many - 1);
  }
  if (fits == 0)
    return Error{Errc::usage,
                 str("--budget ", budget_bytes, " is too small: not even one entry fits; try 16 or more")};
  return density_of(fits);
}

Result<Statistics> run_file(const UpdateFile& file, std::optional<double> density,
                            std::optional<std::uint64_t> budget_bytes) {
  if (density && budget_bytes)
    return Error{Errc::usage, "--density and --budget exclude each other; give one"};
  if (!file.dense()) {
    if (density || budget_bytes)
      return Error{Errc::usage,
                   "the file holds sparse updates, encoded as they are; leave --density and --budget out"};
    return run_sparse(file);
  }
  if (density && !(*density > 0 && *density <= 1))
    return Error{Errc::usage, str("--density ", *density, " is outside (0, 1]")};
  double chosen = density.value_or(0.001);
  if (budget_bytes) {
    const Result<double> found = density_of_budget(file, *budget_bytes);
    if (!found) return found.error();
    chosen = *found;
  }
  return run_dense(file, chosen, true);
}

std::string aligned(const std::string& text, int width, bool left = false) {
  std::ostringstream out;
  out << (left ? std::left : std::right) << std::setw(width) << text;
  return out.str();
}

void put_layouts(std::ostringstream& out, const LayoutBytes& layouts) {
  out << "\nlayout                  bytes   against this one\n";
  for (const auto& [name, bytes] : named(layouts)) {
    const double times =
        layouts.rumor == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(layouts.rumor);
    out << aligned(name, 16, true) << aligned(str(bytes), 13) << aligned(fixed(times, 3), 17) << " x\n";
  }
}

void put_tensors(std::ostringstream& out, const std::vector<TensorReport>& tensors) {
  std::size_t longest = 6;
  for (const TensorReport& tensor : tensors) longest = std::max(longest, tensor.name.size());
  const int name_width = static_cast<int>(std::min<std::size_t>(longest, 60));
  out << "\n"
      << aligned("tensor", name_width, true)
      << "      params     entries   density %   bits/entry    threshold   residual rms\n";
  for (const TensorReport& tensor : tensors)
    out << aligned(tensor.name, name_width, true) << aligned(str(tensor.params), 12)
        << aligned(str(tensor.entries), 12) << aligned(fixed(100 * tensor.density, 4), 12)
        << aligned(fixed(tensor.bits_per_entry, 2), 13)
        << aligned(tensor.threshold > 0 ? fixed(tensor.threshold, 7) : "-", 13)
        << aligned(tensor.residual_rms > 0 ? fixed(tensor.residual_rms, 8) : "-", 15) << "\n";
}

}  // namespace

std::string StatsReport::to_json() const {
  nlohmann::ordered_json json{{"source", source},
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
  json["tensors"] = nlohmann::ordered_json::array();
  for (const TensorReport& tensor : tensors)
    json["tensors"].push_back({{"name", tensor.name},
                               {"params", tensor.params},
                               {"entries", tensor.entries},
                               {"threshold", tensor.threshold},
                               {"density", tensor.density},
                               {"bits_per_entry", tensor.bits_per_entry},
                               {"residual_rms", tensor.residual_rms}});
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string StatsReport::to_table() const {
  std::ostringstream out;
  out << source << ": " << updates << " updates of a model of " << params << " parameters\n\n"
      << "entries             " << entries << " (density " << fixed(100 * density, 4) << " %)\n"
      << "bytes per update    " << fixed(update_bytes_mean, 1) << "\n"
      << "compression         " << fixed(ratio, 1) << " times smaller than 32-bit floats\n"
      << "bits per entry      " << fixed(bits_per_entry, 3) << ", sign included\n"
      << "bound               " << fixed(bound_bits_per_entry, 3) << " for independent positions";
  if (bound_bits_per_entry > 0) out << " (" << fixed(bits_per_entry / bound_bits_per_entry, 4) << " x)";
  out << "\nround trip          " << (round_trip_exact ? "exact" : "BROKEN, please report it") << "\n";
  if (layouts) put_layouts(out, *layouts);
  put_tensors(out, tensors);
  return out.str();
}

StatsReport report_of(const std::string& source, const ParamLayout& layout, const Statistics& statistics,
                      bool with_layouts) {
  StatsReport report{.source = source,
                     .updates = statistics.updates(),
                     .params = layout.params(),
                     .entries = statistics.entries(),
                     .density = statistics.density(),
                     .bits_per_entry = statistics.bits_per_entry(),
                     .bound_bits_per_entry = statistics.bound_bits_per_entry(),
                     .ratio = statistics.ratio(),
                     .update_bytes_mean = mean_bytes(statistics),
                     .round_trip_exact = statistics.round_trip_exact(),
                     .layouts = {},
                     .tensors = {}};
  if (with_layouts) report.layouts = statistics.layouts();
  for (std::size_t t = 0; t < layout.tensors().size(); ++t) {
    const TensorInfo& tensor = layout.tensors()[t];
    const compress::TensorTotals& totals = statistics.tensors()[t];
    const double places = static_cast<double>(statistics.updates()) * tensor.size;
    const double entries = static_cast<double>(totals.entries);
    report.tensors.push_back(
        {.name = tensor.name,
         .params = tensor.size,
         .entries = totals.entries,
         .threshold = totals.threshold,
         .density = places > 0 ? entries / places : 0,
         .bits_per_entry = totals.entries > 0 ? static_cast<double>(totals.bits) / entries : 0,
         .residual_rms = totals.residual_rms});
  }
  return report;
}

Result<StatsReport> stats_of_update_file(const std::string& path, std::optional<double> density,
                                         std::optional<std::uint64_t> budget_bytes) {
  const Result<UpdateFile> file = UpdateFile::read(path);
  if (!file) return file.error();
  const Result<Statistics> statistics = run_file(*file, density, budget_bytes);
  if (!statistics) return Error{statistics.error().code, str(path, ": ", statistics.error().text)};
  return report_of(path, file->layout(), *statistics, true);
}

}  // namespace rumor::tools
