#include "runtime/run/run_identity.h"

#include "models/families/adapters.h"
#include "runtime/base/bytes.h"
#include "runtime/base/check.h"
#include "runtime/base/sha256.h"
#include "runtime/base/text.h"
#include "runtime/run/run_key_table.h"

namespace rumor {

namespace {

// Keys that came after the first runs: a run that does not use them keeps its id.
bool counts(const RunKeyRow& key, const RunConfig& config) {
  if (!key.shared) return false;
  if (key.name == "run.owner") return !config.owner.empty();
  if (key.name == "audit.record") return config.records;
  if (key.name == "audit.arithmetic") return config.takes_portable_steps_only();
  if (key.name == "audit.segment") return config.records && config.segment > 0;
  if (key.name == "pipeline.exits") return config.pipeline.stages > 1 && !config.pipeline.exits.empty();
  if (key.name.starts_with("pipeline.")) return config.pipeline.stages > 1;
  if (key.name == "optimizer.global_batch") return config.global_batch > 0;
  if (key.name == "compress.residual_decay") return config.fades();
  if (key.name == "data.resolution") return config.resolution.is_on();
  if (key.name == "data.tokens") return !config.data.tokens.empty();
  if (key.name == "optimizer.adam_scaling") return config.optimizer.kind == "muon" && config.adam_scaling != "same";
  if (key.name.starts_with("optimizer.adam_")) return config.optimizer.kind == "muon";
  if (key.name.starts_with("model.adapter")) return config.model.adapter.is_on();
  if (is_llama_key(key.name)) return config.model.family == "llama";
  return true;
}

// The frozen weights beside adapters.
const Hash256& base_of(const RunConfig& config) {
  RUMOR_CHECK(config.model.adapter.base != nullptr);  // a model was made before its run has a name
  return config.model.adapter.base->hash;
}

RunPart part(std::string text, const ByteWriter& value) {
  const Hash256 hash = sha256(value.bytes());
  ByteReader in(hash.view());
  return {std::move(text), in.u32()};
}

}  // namespace

RunId run_id(const RunConfig& config, const ParamLayout& layout, const models::StartWeights* start) {
  ByteWriter out;
  out.text("rumor-run-1");
  for (const RunKeyRow& key : run_key_table()) {
    if (!counts(key, config)) continue;
    out.text(key.name);
    out.text(key.shared(config));
  }
  out.raw(layout.hash().view());
  if (config.model.adapter.is_on()) out.raw(base_of(config).view());
  if (start != nullptr) out.raw(start->identity().view());
  return RunId::from(sha256(out.bytes()).view().first(RunId::size));
}

std::vector<RunPart> run_parts(const RunConfig& config, const ParamLayout& layout,
                               const models::StartWeights* start) {
  std::vector<RunPart> parts;
  for (const RunKeyRow& key : run_key_table()) {
    if (!counts(key, config)) continue;
    ByteWriter value;
    value.text(key.name);
    value.text(key.shared(config));
    const std::string shown = key.name == "data.tokens" ? "this tokenizer, " + key.shown(config) : key.shown(config);
    parts.push_back(part(str(key.name, " = ", shown.empty() ? "(not set)" : shown), value));
  }
  if (config.model.adapter.is_on()) {
    ByteWriter value;
    value.text("base");
    value.raw(base_of(config).view());
    parts.push_back(part(str("the frozen base of model.adapter, which is in model.weights and has the SHA-256 ",
                             base_of(config).hex().substr(0, 16), "..."),
                         value));
  }
  if (start != nullptr) {
    ByteWriter weights, beside;
    weights.raw(start->hash.view());
    parts.push_back(part("the initial weights", weights));
    beside.text("beside");
    beside.text(start->beside);
    parts.push_back(part("the parameters that are not trained", beside));
  }
  for (const TensorInfo& tensor : layout.tensors()) {
    ByteWriter value;
    value.text("tensor");
    value.text(tensor.name);
    for (const std::uint32_t extent : tensor.shape) value.u32(extent);
    parts.push_back(part("tensor " + describe(tensor), value));
  }
  return parts;
}

Bytes StartNote::encode() const {
  ByteWriter out;
  out.u8(static_cast<std::uint8_t>(grid_bits));
  out.raw(hash.view());
  return out.take();
}

std::optional<StartNote> StartNote::decode(BytesView bytes) {
  ByteReader in(bytes);
  StartNote note;
  note.grid_bits = in.u8();
  note.hash = in.id<Hash256>();
  if (!in.done() || note.grid_bits > 30) return std::nullopt;
  return note;
}

}  // namespace rumor
