#include "tools/commands/joined_stages.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "runtime/base/text.h"
#include "tools/words/command.h"

namespace rumor::tools {

namespace {

using daemon::ExportedWeights;

// The content of DIR/stage.json.
struct PlaceInPipeline {
  RunId pipeline;
  std::uint32_t stage = 0, stages = 0;
};

std::optional<RunId> run_of_hex(const std::string& hex) {
  RunId id;
  if (hex.size() != 2 * RunId::size) return std::nullopt;
  for (std::size_t i = 0; i < RunId::size; ++i) {
    const char* const end = hex.data() + 2 * i + 2;
    if (std::from_chars(end - 2, end, id.bytes[i], 16).ptr != end) return std::nullopt;
  }
  return id;
}

Result<PlaceInPipeline> place_in_pipeline(const std::string& folder) {
  const auto text = read_text_file(folder + "/stage.json");
  if (!text)
    return Error{Errc::usage, str(folder, " is not of a peer that serves a stage: there is no stage.json; give one ",
                                  "state directory, or those of all stages of a pipeline")};
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  const Error damaged{Errc::corrupt, str(folder, "/stage.json is damaged; start `rumor peer` once more on ", folder)};
  if (!json.is_object()) return damaged;
  PlaceInPipeline place;
  const auto pipeline = json.find("pipeline"), stage = json.find("stage"), stages = json.find("stages");
  if (pipeline == json.end() || !pipeline->is_string() || stage == json.end() || !stage->is_number_unsigned() ||
      stages == json.end() || !stages->is_number_unsigned())
    return damaged;
  const auto id = run_of_hex(pipeline->get<std::string>());
  place.stage = stage->get<std::uint32_t>();
  place.stages = stages->get<std::uint32_t>();
  if (!id || place.stage < 1 || place.stage > place.stages) return damaged;
  place.pipeline = *id;
  return place;
}

// The place of each stage in `folders`, from the first stage on.
Result<std::vector<std::size_t>> in_order_of_stages(const std::vector<std::string>& folders, RunId& pipeline) {
  std::map<std::uint32_t, std::size_t> of_stage;
  std::uint32_t stages = 0;
  for (std::size_t i = 0; i < folders.size(); ++i) {
    const auto place = place_in_pipeline(folders[i]);
    if (!place) return place.error();
    if (i == 0) pipeline = place->pipeline, stages = place->stages;
    if (place->pipeline != pipeline)
      return Error{Errc::usage, str(folders[i], " is of pipeline ", place->pipeline.brief(), ", ", folders[0], " of ",
                                    pipeline.brief(), "; give state directories of one pipeline")};
    if (const auto [at, fresh] = of_stage.emplace(place->stage, i); !fresh)
      return Error{Errc::usage, str(folders[at->second], " and ", folders[i], " both have stage ", place->stage,
                                    "; give one peer of each stage")};
  }
  std::vector<std::size_t> order;
  for (std::uint32_t stage = 1; stage <= stages; ++stage) {
    const auto at = of_stage.find(stage);
    if (at == of_stage.end())
      return Error{Errc::usage, str("stage ", stage, " of ", stages, " is missing; give the state directory of one ",
                                    "peer of each stage")};
    order.push_back(at->second);
  }
  return order;
}

}  // namespace

bool serves_stage(const std::string& folder) { return std::filesystem::exists(folder + "/stage.json"); }

Result<ExportedWeights> join_stages(const std::vector<std::string>& folders, std::vector<ExportedWeights> parts) {
  RunId pipeline;
  const auto order = in_order_of_stages(folders, pipeline);
  if (!order) return order.error();
  const ExportedWeights& first = parts[order->front()];
  ExportedWeights whole{.form = first.form, .samples = first.samples, .averaged = first.averaged};
  std::vector<TensorInfo> tensors;
  for (const std::size_t i : *order) {
    const ExportedWeights& part = parts[i];
    const auto& more = part.form.layout.tensors();
    tensors.insert(tensors.end(), more.begin(), more.end());
    whole.weights.insert(whole.weights.end(), part.weights.begin(), part.weights.end());
    whole.samples = std::min(whole.samples, part.samples);
    whole.averaged = std::min(whole.averaged, part.averaged);
  }
  auto layout = ParamLayout::create(std::move(tensors));
  if (!layout) return layout.error();
  whole.form.layout = std::move(layout).value();
  whole.form.run = pipeline;
  return whole;
}

}  // namespace rumor::tools
