#include "tools/stats/stats_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <utility>

#include "compress/select/budget.h"
#include "compress/select/compressor.h"
#include "runtime/base/text.h"
#include "tools/stats/update_file.h"

namespace rumor::tools {
namespace {

using compress::ByteBudget;
using compress::Compressor;
using compress::SparseUpdate;
using compress::Statistics;

struct DenseRun {
  Statistics statistics;
  std::vector<float> residual;
  std::vector<Bin> ages;
};

// Waiting change by the number of updates since its parameter was last sent, or since the beginning.
// last_sent: the update of each parameter, counted from 1; 0 for none.
std::vector<Bin> age_histogram(std::span<const float> residual, const std::vector<std::uint32_t>& last_sent,
                               std::uint32_t updates) {
  const auto octaves = static_cast<std::size_t>(std::bit_width(updates));
  std::vector<double> waiting(octaves + 1, 0);
  double sum = 0;
  for (std::size_t i = 0; i < residual.size(); ++i) {
    const double size = std::abs(static_cast<double>(residual[i]));
    waiting[static_cast<std::size_t>(std::bit_width(updates - last_sent[i]))] += size;
    sum += size;
  }
  std::vector<Bin> bins;
  if (sum <= 0) return bins;
  for (std::size_t i = 0; i <= octaves; ++i)
    bins.push_back({static_cast<double>(std::uint64_t{1} << i), waiting[i] / sum});
  return bins;
}

// All steps of a dense file, as training would send them.
Result<DenseRun> run_dense(const UpdateFile& file, double density, std::optional<std::uint64_t> budget_bytes) {
  const ParamLayout& layout = file.layout();
  const compress::CompressorOptions options{.density = density};
  Statistics statistics(layout, options.grid_bits);
  Compressor compressor(layout, options);
  std::optional<ByteBudget> budget;
  if (budget_bytes) budget.emplace(layout.params(), ByteBudget::Limits{static_cast<double>(*budget_bytes), 0});
  SparseUpdate update;
  std::vector<std::uint32_t> last_sent(layout.params(), 0);
  for (std::size_t step = 0; step < file.steps(); ++step) {
    if (budget) compressor.set_entries(budget->plan(0));
    const auto change = file.change(step);
    if (!change) return change.error();
    if (Result<void> absorbed = compressor.absorb(*change, update); !absorbed)
      return Error{absorbed.error().code, str("step ", file.number(step), ": ", absorbed.error().text)};
    if (budget) {
      const Bytes payload = compress::encode_within(compressor, layout, update, *budget_bytes);
      if (payload.size() > *budget_bytes)
        return Error{Errc::usage, str("--budget ", *budget_bytes, " is too small: one entry takes ",
                                      payload.size(), " bytes")};
      budget->sent(update.index.size(), payload.size());
    }
    statistics.add(update, true);
    for (const std::uint32_t position : update.index) last_sent[position] = static_cast<std::uint32_t>(step + 1);
  }
  const std::span<const float> residual = compressor.residual();
  std::vector<Bin> ages = age_histogram(residual, last_sent, static_cast<std::uint32_t>(file.steps()));
  return DenseRun{std::move(statistics), {residual.begin(), residual.end()}, std::move(ages)};
}

Result<Statistics> run_sparse(const UpdateFile& file) {
  Statistics statistics(file.layout(), {});
  for (std::size_t step = 0; step < file.steps(); ++step) {
    const Result<SparseUpdate> update = file.update(step);
    if (!update) return update.error();
    statistics.add(*update, true);
  }
  return statistics;
}

Result<StatsReport> run_file(const std::string& path, const UpdateFile& file, std::optional<double> density,
                             std::optional<std::uint64_t> budget_bytes) {
  if (density && budget_bytes)
    return Error{Errc::usage, "--density and --budget exclude each other; give one"};
  if (!file.dense()) {
    if (density || budget_bytes)
      return Error{Errc::usage,
                   "the file holds sparse updates, encoded as they are; leave --density and --budget out"};
    const Result<Statistics> statistics = run_sparse(file);
    if (!statistics) return statistics.error();
    return report_of(path, file.layout(), *statistics, true);
  }
  if (density && !(*density > 0 && *density <= 1))
    return Error{Errc::usage, str("--density ", *density, " is outside (0, 1]")};
  const Result<DenseRun> run = run_dense(file, density.value_or(0.001), budget_bytes);
  if (!run) return run.error();
  StatsReport report = report_of(path, file.layout(), run->statistics, true);
  add_residual(report, file.layout(), run->statistics, run->residual);
  report.residual_ages = run->ages;
  return report;
}

}  // namespace

Result<StatsReport> stats_of_update_file(const std::string& path, std::optional<double> density,
                                         std::optional<std::uint64_t> budget_bytes) {
  const Result<UpdateFile> file = UpdateFile::read(path);
  if (!file) return file.error();
  Result<StatsReport> report = run_file(path, *file, density, budget_bytes);
  if (!report) return Error{report.error().code, str(path, ": ", report.error().text)};
  return report;
}

}  // namespace rumor::tools
