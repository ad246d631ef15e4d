// Llama: the architecture of Llama 1 to 3 (Touvron et al. 2023), Qwen2 and Mistral.
//
//   x = table[token]
//   for each layer:  x = x + W_o attention(rotate(W_q n), rotate(W_k n), W_v n),  n = rms_norm(x)
//                    x = x + W_down (silu(W_gate n) * W_up n),                    n = rms_norm(x)
//   logits = head rms_norm(x);  the head is a table of its own, or the same table
//
// Parameters have the names, shapes and order of Hugging Face's LlamaForCausalLM (model.embed_tokens.weight,
// model.layers.0.self_attn.q_proj.weight [heads * head_size, d], outputs first), so that weights go to and from there
// unchanged. With model.qkv_bias they are those of Qwen2ForCausalLM. MistralForCausalLM is the same without a window.
// A tied head has no lm_head.weight.
//
// Cost of a step: 6 operations per weight and token, and 6 * context * heads * head_size per layer and token for
// attention. Memory: 5 * embedding + 4 * feed_forward + 2 to 4 * heads * head_size floats per token and layer, and that
// of models/layers/attention.h and models/layers/embedding.h.
//
// Bits: all sums run in kernels (models/kernels/kernel_table.h); any number of threads gives the same.
#pragma once

#include <memory>
#include <vector>

#include "models/families/language_model.h"
#include "models/layers/attention.h"
#include "models/layers/linear.h"
#include "models/layers/rms_norm.h"
#include "models/layers/rotary.h"

namespace rumor::models {

// Offsets in the parameter vector, and the sizes.
struct LlamaShape {
  struct Layer {
    std::uint32_t query, key, value, output;          // weights of the attention
    std::uint32_t query_bias, key_bias, value_bias;   // with qkv_bias
    std::uint32_t gate, up, down;                     // weights of the feed-forward part
    std::uint32_t attention_gain, feed_forward_gain;  // of the norms before them
  };
  long vocabulary = 0, context = 0, width = 0, feed_forward = 0;
  long heads = 0, groups = 0, head_size = 0;  // groups: of heads with keys and values in common
  bool qkv_bias = false;
  float epsilon = 0;
  double rope_base = 0;
  RotaryScaling scaling;
  ModelPart part;  // of the layers
  bool tied_head = true;
  std::uint32_t table = 0;           // in the first part
  std::uint32_t gain = 0, head = 0;  // in the last part; head: table, if it is tied
  std::vector<Layer> layer;          // those of the part

  Attention::Shape attention(long batch) const { return {batch, context, heads, head_size, groups}; }
};

// `config` with the sizes that it leaves open (0) filled in. Errors: Errc::usage, naming the key.
Result<ModelConfig> complete_llama(const ModelConfig& config);

// The tensors in the order of LlamaForCausalLM's state_dict. Errors: as complete_llama; Errc::limit (too many
// parameters).
Result<ParamLayout> llama_layout(const ModelConfig& config);
// Requires: llama_layout(config) is fine.
LlamaShape llama_shape(const ModelConfig& config);

// Errors: as llama_layout.
Result<std::unique_ptr<Model>> make_llama(const ModelConfig& config);

class Llama final : public LanguageModel {
 public:
  // Requires: `shape` is of `layout`.
  Llama(ParamLayout layout, LlamaShape shape);

  // Normal of deviation 0.02, projections that feed the sum over layers 0.02 / sqrt(2 layers), gains 1, biases 0.
  TensorStart start_of(const TensorInfo& tensor) const override;
  // All matrices except the token tables.
  std::uint32_t hidden_matrices(const TensorInfo& tensor) const override;
  std::size_t memory_bytes() const override;
  void adapt(Adapters& adapters) override { freeze(adapters); }

 private:
  // The activations that one layer keeps for the backward pass; rows are the tokens of a batch. All floats are in
  // memory_.
  struct Layer {
    RmsNorm attention_norm, feed_forward_norm;
    Attention attention;
    float* normed_1 = nullptr;  // [rows][width]
    float* qkv = nullptr;       // [rows][attention row], queries and keys rotated
    float* looked = nullptr;    // [rows][heads * head_size], the output of attention
    float* middle = nullptr;    // [rows][width], the sum after attention
    float* normed_2 = nullptr;  // [rows][width]
    float* gate = nullptr;      // [rows][feed_forward], before silu
    float* up = nullptr;        // [rows][feed_forward]
    float* active = nullptr;    // [rows][feed_forward], silu(gate) * up
    float* out = nullptr;       // [rows][width]
  };

  Top run(const float* params, const TokenBatch& batch, const float* below, const float* state) override;
  void run_back(const float* params, const TokenBatch& batch, const float* below, float* gradient,
                float* below_change) override;
  void make_room(long rows);
  // A projection with its adapter, if it has one. `weight`: its offset. The rest as Linear.
  void project(const float* params, Linear::Shape shape, const float* x, std::uint32_t weight, const float* bias,
               const float* residual, float* y);
  void project_back(const float* params, Linear::Shape shape, const float* x, std::uint32_t weight, const float* change,
                    float* gradient, float* bias_gradient, float* x_change, Start start);
  void project_qkv(const float* params, const LlamaShape::Layer& at, long rows, const float* x, float* qkv);
  void project_qkv_back(const float* params, const LlamaShape::Layer& at, long rows, const float* x, float* gradient);
  void forward_layer(const float* params, std::size_t index, Attention::Shape attention, const float* x);
  void feed_forward(const float* params, const LlamaShape::Layer& at, long rows, Layer& layer);
  void feed_back(const float* params, const LlamaShape::Layer& at, long rows, Layer& layer, float* gradient);
  void backward_layer(const float* params, std::size_t index, Attention::Shape attention, const float* x,
                      float* gradient);

  LlamaShape shape_;
  Rotary rotary_;
  std::vector<Layer> layers_;
  LargeVector<float> memory_;  // of all activations, in one piece, in large pages
  long rows_max_ = 0;          // for which there is room
  float* embedded_ = nullptr;  // [rows][width], before the first layer; in the first part
  float* normed_ = nullptr;    // [rows][width], after the last norm; in the last part
  RmsNorm norm_;
  Linear linear_;
  float* change_ = nullptr;         // [rows][width], d loss / d the sum, from the last layer to the first
  float* inner_ = nullptr;          // [rows][width], changes within a layer
  float* qkv_change_ = nullptr;     // [rows][attention row]
  float* looked_change_ = nullptr;  // [rows][heads * head_size]
  float *gate_change_ = nullptr, *up_change_ = nullptr, *active_change_ = nullptr;  // [rows][feed_forward]
};

}  // namespace rumor::models
