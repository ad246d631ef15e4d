#include "models/families/part.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "models/families/cnn_plan.h"
#include "models/families/gpt.h"
#include "models/families/llama.h"
#include "models/families/lstm.h"
#include "runtime/base/text.h"

namespace rumor::models {
namespace {

bool ties_its_head(const ModelConfig& config) {
  return (config.family == "gpt" || config.family == "llama") && config.tied_head;
}

// Sums of the costs of the first units: [units + 1], the last one about 2^20.
Result<std::vector<std::uint64_t>> cost_sums(const ModelConfig& config, std::uint32_t units) {
  std::vector<std::uint64_t> costs;
  for (std::uint32_t unit = 0; unit < units; ++unit) {
    ModelConfig one = config;
    one.units = {unit, unit + 1};
    one.exit = {};
    const auto made = make_model(one);
    if (!made) return made.error();
    costs.push_back((*made)->multiply_adds(1));
  }
  const std::uint64_t all = std::accumulate(costs.begin(), costs.end(), std::uint64_t{0});
  std::vector<std::uint64_t> sums{0};
  for (const std::uint64_t cost : costs) sums.push_back(sums.back() + cost / std::max<std::uint64_t>(all >> 20, 1));
  return sums;
}

// The best cut of units whose costs add up to `sums`: `cost_of` takes the cost of a part and of the parts before it and
// gives that of all of them. Parts of one unit at least. Returns the units of each part, and the cost.
template <class Cost>
std::pair<std::vector<std::uint32_t>, std::uint64_t> best_cut(std::span<const std::uint64_t> sums,
                                                              std::uint32_t stages, Cost cost_of) {
  constexpr std::uint64_t impossible = ~std::uint64_t{0};
  const auto units = static_cast<std::uint32_t>(sums.size() - 1);
  std::vector<std::uint64_t> before(units + 1, impossible);  // the cost of the first units in one part less
  before[0] = 0;
  std::vector<std::vector<std::uint32_t>> begins;  // [stage][units]: where the last part begins
  for (std::uint32_t stage = 1; stage <= stages; ++stage) {
    std::vector<std::uint64_t> now(units + 1, impossible);
    begins.emplace_back(units + 1, 0);
    for (std::uint32_t end = stage; end <= units; ++end)
      for (std::uint32_t begin = stage - 1; begin < end; ++begin) {
        if (before[begin] == impossible) continue;
        const std::uint64_t cost = cost_of(sums[end] - sums[begin], before[begin]);
        if (cost > now[end]) continue;
        now[end] = cost;
        begins.back()[end] = begin;
      }
    before = std::move(now);
  }
  std::vector<std::uint32_t> cut(stages);
  for (std::uint32_t stage = stages, end = units; stage > 0; --stage) {
    const std::uint32_t begin = begins[stage - 1][end];
    cut[stage - 1] = end - begin;
    end = begin;
  }
  return {cut, before[units]};
}

// The units of each part: the most costly part as cheap as can be, then the others alike. Of equal cuts that with the
// larger parts first. Costs are whole numbers, so that all peers of a pipeline find the same cut.
std::vector<std::uint32_t> even_cut(std::span<const std::uint64_t> sums, std::uint32_t stages) {
  const std::uint64_t most =
      best_cut(sums, stages, [](std::uint64_t part, std::uint64_t before) { return std::max(part, before); }).second;
  const std::uint64_t too_much = std::uint64_t{1} << 62;
  return best_cut(sums, stages, [most, too_much](std::uint64_t part, std::uint64_t before) {
           return part > most ? too_much : std::min(before + part * part, too_much);
         }).first;
}

Result<void> check_cut(std::span<const std::uint32_t> cut, std::uint32_t stages, std::uint32_t units) {
  std::uint64_t sum = 0;
  for (const std::uint32_t part : cut) {
    if (part == 0)
      return Error{Errc::usage, "pipeline.cut: each stage needs at least one unit of the model, not 0"};
    sum += part;
  }
  if (cut.size() != stages)
    return Error{Errc::usage, str("pipeline.cut has ", cut.size(), " numbers for ", stages,
                                  " stages; give the units of each stage, or leave the key out")};
  if (sum != units)
    return Error{Errc::usage, str("pipeline.cut: its numbers add up to ", sum, ", but this model has ", units,
                                  units == 1 ? " unit" : " units", " to be cut between")};
  return {};
}

}  // namespace

Result<ModelPart> ModelPart::create(UnitRange range, std::uint32_t units) {
  const std::uint32_t end = range.end == UnitRange::all ? units : range.end;
  if (range.begin >= end || end > units)
    return Error{Errc::usage,
                 str("units ", range.begin, " to ", end, " are no part of a model of ", units, " units")};
  return ModelPart{range.begin, end, units};
}

Result<std::uint32_t> unit_count(const ModelConfig& config) {
  ModelConfig whole = config;
  whole.units = {};
  whole.exit = {};
  const auto made = make_model(whole);
  if (!made) return made.error();
  return (*made)->part().units;
}

Result<std::vector<UnitRange>> cut_model(const ModelConfig& config, std::uint32_t stages,
                                         std::span<const std::uint32_t> cut) {
  const auto units = unit_count(config);
  if (!units) return units.error();
  if (stages == 0 || stages > *units)
    return Error{Errc::usage, str("pipeline.stages = ", stages, ": this model can be cut into 1 to ", *units,
                                  " stages; give it more layers, or take fewer stages")};
  if (stages > 1 && ties_its_head(config))
    return Error{Errc::usage,
                 "a head that is the embedding's table would be in the first and in the last stage; set "
                 "model.tied_head = false"};
  std::vector<std::uint32_t> even;
  if (cut.empty()) {
    const auto sums = cost_sums(config, *units);
    if (!sums) return sums.error();
    even = even_cut(*sums, stages);
    cut = even;
  }
  if (auto fits = check_cut(cut, stages, *units); !fits) return fits.error();
  std::vector<UnitRange> parts;
  for (std::uint32_t begin = 0; const std::uint32_t size : cut) {
    parts.push_back({begin, begin + size});
    begin += size;
  }
  return parts;
}

}  // namespace rumor::models
