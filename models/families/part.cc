#include "models/families/part.h"

#include <numeric>

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

// The units of each part.
std::vector<std::uint32_t> even_cut(std::uint32_t units, std::uint32_t stages) {
  std::vector<std::uint32_t> cut(stages, units / stages);
  for (std::uint32_t i = 0; i < units % stages; ++i) ++cut[i];
  return cut;
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
  const std::vector<std::uint32_t> even = even_cut(*units, stages);
  if (cut.empty()) cut = even;
  if (auto fits = check_cut(cut, stages, *units); !fits) return fits.error();
  std::vector<UnitRange> parts;
  for (std::uint32_t begin = 0; const std::uint32_t size : cut) {
    parts.push_back({begin, begin + size});
    begin += size;
  }
  return parts;
}

}  // namespace rumor::models
