// Names and shapes of a GPT's tensors, as Hugging Face's GPT2LMHeadModel has them.
#include "models/families/gpt.h"
#include "models/families/tensor_finder.h"
#include "runtime/base/text.h"

namespace rumor::models {
namespace {

constexpr std::string_view gpt2_prefix = "transformer.";
constexpr const char* gpt2_head = "lm_head.weight";

GptShape::Layer find_gpt_layer(TensorFinder& find, const std::string& at, std::uint32_t d) {
  GptShape::Layer layer{};
  layer.norm_1_gain = find.offset(at + "ln_1.weight", {d});
  layer.norm_1_bias = find.offset(at + "ln_1.bias", {d});
  layer.attention_weight = find.offset(at + "attn.c_attn.weight", {d, 3 * d});
  layer.attention_bias = find.offset(at + "attn.c_attn.bias", {3 * d});
  layer.output_weight = find.offset(at + "attn.c_proj.weight", {d, d});
  layer.output_bias = find.offset(at + "attn.c_proj.bias", {d});
  layer.norm_2_gain = find.offset(at + "ln_2.weight", {d});
  layer.norm_2_bias = find.offset(at + "ln_2.bias", {d});
  layer.wide_weight = find.offset(at + "mlp.c_fc.weight", {d, 4 * d});
  layer.wide_bias = find.offset(at + "mlp.c_fc.bias", {4 * d});
  layer.narrow_weight = find.offset(at + "mlp.c_proj.weight", {4 * d, d});
  layer.narrow_bias = find.offset(at + "mlp.c_proj.bias", {d});
  return layer;
}

// The offsets of a shape whose sizes are known.
Result<GptShape> find_gpt_tensors(const ParamLayout& layout, GptShape shape) {
  TensorFinder find(layout, gpt2_prefix);
  const auto d = static_cast<std::uint32_t>(shape.width),
             vocabulary = static_cast<std::uint32_t>(shape.vocabulary);
  if (shape.part.is_first()) {
    shape.table = find.offset("wte.weight", {vocabulary, d});
    shape.position = find.offset("wpe.weight", {static_cast<std::uint32_t>(shape.context), d});
  }
  for (std::uint32_t i = shape.part.begin; i < shape.part.end; ++i)
    shape.layer.push_back(find_gpt_layer(find, str("h.", i, "."), d));
  if (shape.part.is_last()) {
    shape.norm_gain = find.offset("ln_f.weight", {d});
    shape.norm_bias = find.offset("ln_f.bias", {d});
    shape.head = shape.tied_head ? shape.table : find.offset(gpt2_head, {vocabulary, d});
  }
  if (!find.wrong().empty()) return Error{Errc::mismatch, str("this is no GPT-2: ", find.wrong())};
  return shape;
}

}  // namespace

Result<ParamLayout> gpt_layout(const ModelConfig& config) {
  const std::uint32_t d = config.embedding;
  if (config.vocabulary == 0)
    return Error{Errc::usage, "a gpt wants tokens: set data.kind to one that has them, such as \"text\""};
  if (config.vocabulary < 2 || config.vocabulary > vocabulary_max)
    return Error{Errc::usage, str("a gpt needs a vocabulary of 2 to ", vocabulary_max, ", not ", config.vocabulary)};
  if (config.context == 0 || config.context > 65'536)
    return Error{Errc::usage, str("model.context must be from 1 to 65536, not ", config.context)};
  if (config.layers == 0 || config.layers > 1024)
    return Error{Errc::usage, str("model.layers must be from 1 to 1024, not ", config.layers)};
  if (d == 0 || d > 65'536 || config.heads == 0 || d % config.heads != 0)
    return Error{Errc::usage,
                 str("model.embedding (", d, ") must be a multiple of model.heads (", config.heads, ")")};
  const auto part = ModelPart::create(config.units, config.layers);
  if (!part) return part.error();
  std::vector<TensorInfo> tensors;
  const auto add = [&](const std::string& name, std::vector<std::uint32_t> shape) {
    tensors.push_back({str(gpt2_prefix, name), std::move(shape)});
  };
  if (part->is_first()) {
    add("wte.weight", {config.vocabulary, d});
    add("wpe.weight", {config.context, d});
  }
  for (std::uint32_t i = part->begin; i < part->end; ++i) {
    const std::string layer = str("h.", i, ".");
    add(layer + "ln_1.weight", {d});
    add(layer + "ln_1.bias", {d});
    add(layer + "attn.c_attn.weight", {d, 3 * d});
    add(layer + "attn.c_attn.bias", {3 * d});
    add(layer + "attn.c_proj.weight", {d, d});
    add(layer + "attn.c_proj.bias", {d});
    add(layer + "ln_2.weight", {d});
    add(layer + "ln_2.bias", {d});
    add(layer + "mlp.c_fc.weight", {d, 4 * d});
    add(layer + "mlp.c_fc.bias", {4 * d});
    add(layer + "mlp.c_proj.weight", {4 * d, d});
    add(layer + "mlp.c_proj.bias", {d});
  }
  if (part->is_last()) {
    add("ln_f.weight", {d});
    add("ln_f.bias", {d});
    if (!config.tied_head) tensors.push_back({gpt2_head, {config.vocabulary, d}});
  }
  return ParamLayout::create(std::move(tensors));
}

Result<GptShape> gpt_shape(const ModelConfig& config, const ParamLayout& layout) {
  const auto part = ModelPart::create(config.units, config.layers);
  if (!part) return part.error();
  GptShape shape;
  shape.vocabulary = config.vocabulary;
  shape.context = config.context;
  shape.heads = config.heads;
  shape.width = config.embedding;
  shape.part = *part;
  shape.tied_head = config.tied_head;
  return find_gpt_tensors(layout, std::move(shape));
}

Result<GptShape> gpt_shape(const ParamLayout& layout, std::uint32_t heads) {
  const TensorFinder find(layout, gpt2_prefix);
  const TensorInfo *table = find.find("wte.weight"), *position = find.find("wpe.weight");
  if (table == nullptr || position == nullptr || table->shape.size() != 2 || position->shape.size() != 2)
    return Error{Errc::mismatch,
                 "this is no GPT: it has no tables transformer.wte.weight and transformer.wpe.weight"};
  const std::uint32_t d = table->shape[1];
  if (heads == 0 || d % heads != 0)
    return Error{Errc::mismatch, str("an embedding of ", d, " cannot be split among ", heads, " heads")};
  if (table->shape[0] > vocabulary_max || position->shape[0] > 65'536 || d > 65'536)
    return Error{Errc::mismatch,
                 str("this GPT is larger than the ", vocabulary_max,
                     " tokens and the 65536 places and embedding that are supported")};
  GptShape shape;
  shape.vocabulary = table->shape[0];
  shape.context = position->shape[0];
  shape.heads = heads;
  shape.width = d;
  shape.tied_head = find.find(gpt2_head) == nullptr;
  while (find.find(str("h.", shape.part.end, ".ln_1.weight")) != nullptr) ++shape.part.end;
  if (shape.part.end == 0)
    return Error{Errc::mismatch, "this is no GPT-2: it has no layers (transformer.h.0.ln_1.weight)"};
  shape.part.units = shape.part.end;
  return find_gpt_tensors(layout, std::move(shape));
}

}  // namespace rumor::models
