// Names and shapes of a Llama's tensors, as Hugging Face's LlamaForCausalLM has them.
#include "models/families/llama.h"
#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::models {
namespace {

Error wrong(std::string_view key, const auto& value, std::string_view what) {
  return {Errc::usage, str("model.", key, " = ", value, ": ", what)};
}

// Feed-forward parts of a SwiGLU are 8/3 of the width (Shazeer 2020), rounded up to whole vectors.
std::uint32_t usual_feed_forward(std::uint32_t width) { return (8 * width / 3 + 31) / 32 * 32; }

Result<void> check_sizes(const ModelConfig& c) {
  constexpr std::uint32_t most = 65'536;
  if (c.vocabulary == 0)
    return Error{Errc::usage, "a llama wants tokens: set data.kind to one that has them, such as \"text\""};
  if (c.vocabulary < 2 || c.vocabulary > vocabulary_max)
    return Error{Errc::usage, str("a llama needs a vocabulary of 2 to ", vocabulary_max, ", not ", c.vocabulary)};
  if (c.context == 0 || c.context > 1u << 20) return wrong("context", c.context, "must be from 1 to 1048576");
  if (c.layers == 0 || c.layers > 1024) return wrong("layers", c.layers, "must be from 1 to 1024");
  if (c.embedding == 0 || c.embedding > most) return wrong("embedding", c.embedding, "must be from 1 to 65536");
  if (c.heads == 0) return wrong("heads", c.heads, "must be at least 1");
  if (c.kv_heads > c.heads || (c.kv_heads > 0 && c.heads % c.kv_heads != 0))
    return wrong("kv_heads", c.kv_heads, str("must divide model.heads (", c.heads, ")"));
  if (c.head_size == 0 && c.embedding % c.heads != 0)
    return wrong("embedding", c.embedding, str("must be a multiple of model.heads (", c.heads, ")"));
  return {};
}

}  // namespace

Result<ModelConfig> complete_llama(const ModelConfig& config) {
  if (auto fine = check_sizes(config); !fine) return fine.error();
  ModelConfig c = config;
  if (c.kv_heads == 0) c.kv_heads = c.heads;
  if (c.head_size == 0) c.head_size = c.embedding / c.heads;
  if (c.feed_forward == 0) c.feed_forward = usual_feed_forward(c.embedding);
  if (c.head_size % 2 != 0 || c.head_size > 4096)
    return wrong("head_size", c.head_size,
                 "must be even, since positions rotate pairs; change model.heads or model.embedding");
  if (c.feed_forward > 1u << 20) return wrong("feed_forward", c.feed_forward, "must be at most 1048576");
  const RotaryScaling& scaling = c.rope_scaling;
  if (!(c.rope_base > 1)) return wrong("rope_base", c.rope_base, "must be above 1");
  if (!(scaling.factor >= 1) || !(scaling.low > 0) || !(scaling.high > scaling.low) || scaling.original_context == 0)
    return Error{Errc::usage, "model.rope_scaling: the factor must be at least 1, and the bounds 0 < low < high"};
  if (!(c.norm_epsilon > 0)) return wrong("norm_epsilon", c.norm_epsilon, "must be above 0");
  return c;
}

Result<ParamLayout> llama_layout(const ModelConfig& config) {
  const auto complete = complete_llama(config);
  if (!complete) return complete.error();
  const ModelConfig& c = *complete;
  const std::uint32_t d = c.embedding, queries = c.heads * c.head_size, keys = c.kv_heads * c.head_size;
  const auto part = ModelPart::create(c.units, c.layers);
  if (!part) return part.error();
  std::vector<TensorInfo> tensors;
  if (part->is_first()) tensors.push_back({"model.embed_tokens.weight", {c.vocabulary, d}});
  for (std::uint32_t i = part->begin; i < part->end; ++i) {
    const auto add = [&](const char* name, std::vector<std::uint32_t> shape) {
      tensors.push_back({str("model.layers.", i, ".", name), std::move(shape)});
    };
    const auto project = [&](const std::string& name, std::uint32_t out) {
      add((name + ".weight").c_str(), {out, d});
      if (c.qkv_bias) add((name + ".bias").c_str(), {out});
    };
    project("self_attn.q_proj", queries);
    project("self_attn.k_proj", keys);
    project("self_attn.v_proj", keys);
    add("self_attn.o_proj.weight", {d, queries});
    add("mlp.gate_proj.weight", {c.feed_forward, d});
    add("mlp.up_proj.weight", {c.feed_forward, d});
    add("mlp.down_proj.weight", {d, c.feed_forward});
    add("input_layernorm.weight", {d});
    add("post_attention_layernorm.weight", {d});
  }
  if (part->is_last()) tensors.push_back({"model.norm.weight", {d}});
  if (part->is_last() && !c.tied_head) tensors.push_back({"lm_head.weight", {c.vocabulary, d}});
  return ParamLayout::create(std::move(tensors));
}

LlamaShape llama_shape(const ModelConfig& config) {
  const ModelConfig c = complete_llama(config).value();
  const ParamLayout layout = llama_layout(c).value();
  auto at = layout.tensors().begin();
  const auto next = [&] { return (at++)->offset; };
  LlamaShape shape;
  shape.vocabulary = c.vocabulary;
  shape.context = c.context;
  shape.width = c.embedding;
  shape.feed_forward = c.feed_forward;
  shape.heads = c.heads;
  shape.groups = c.kv_heads;
  shape.head_size = c.head_size;
  shape.qkv_bias = c.qkv_bias;
  shape.epsilon = static_cast<float>(c.norm_epsilon);
  shape.rope_base = c.rope_base;
  shape.scaling = c.rope_scaling;
  shape.part = ModelPart::create(c.units, c.layers).value();
  shape.tied_head = c.tied_head;
  if (shape.part.is_first()) shape.table = next();
  for (std::uint32_t i = shape.part.begin; i < shape.part.end; ++i) {
    LlamaShape::Layer layer{};
    const std::pair<std::uint32_t*, std::uint32_t*> projections[] = {
        {&layer.query, &layer.query_bias}, {&layer.key, &layer.key_bias}, {&layer.value, &layer.value_bias}};
    for (const auto& [weight, bias] : projections) {
      *weight = next();
      if (c.qkv_bias) *bias = next();
    }
    for (std::uint32_t* one : {&layer.output, &layer.gate, &layer.up, &layer.down, &layer.attention_gain,
                               &layer.feed_forward_gain})
      *one = next();
    shape.layer.push_back(layer);
  }
  if (shape.part.is_last()) {
    shape.gain = next();
    shape.head = c.tied_head ? shape.table : next();
  }
  RUMOR_CHECK(at == layout.tensors().end());
  return shape;
}

}  // namespace rumor::models
