// Gpt: the GPT-2 architecture (Radford et al. 2019), from byte models of 100,000 parameters to GPT-2 124M.
//
//   x = table[token] + position[place]
//   for each layer:  x = x + projection(attention(norm_1(x)))
//                    x = x + projection(gelu(projection(norm_2(x))))
//   logits = norm_f(x) head^T;  the head is a table of its own, or the same table (model.tied_head)
//
// Parameters have the names and shapes of Hugging Face's GPT2LMHeadModel (transformer.wte.weight,
// transformer.h.0.attn.c_attn.weight [d, 3 d], inputs first), so that an export loads there unchanged. A tied
// lm_head.weight is transformer.wte.weight and is omitted, as are the masks. There is no dropout, as in
// evaluation there.
//
// Cost of a step: 6 operations per weight and token, and 6 * context * embedding per layer and token for
// attention. Memory: 16 * embedding floats per token and layer, 8 * embedding more per token, and that of
// models/layers/attention.h and models/layers/embedding.h.
//
// Bits: all sums run in kernels (models/kernels/kernel_table.h); any number of threads gives the same.
#pragma once

#include <memory>
#include <vector>

#include "models/families/language_model.h"
#include "models/layers/attention.h"
#include "models/layers/layer_norm.h"
#include "models/layers/projection.h"
#include "runtime/base/large_vector.h"

namespace rumor::models {

// Offsets in the parameter vector.
struct GptShape {
  struct Layer {
    std::uint32_t norm_1_gain, norm_1_bias, attention_weight, attention_bias, output_weight, output_bias;
    std::uint32_t norm_2_gain, norm_2_bias, wide_weight, wide_bias, narrow_weight, narrow_bias;
  };
  long vocabulary = 0, context = 0, heads = 0, width = 0;
  ModelPart part;  // of the layers
  bool tied_head = true;
  std::uint32_t table = 0, position = 0;                 // in the first part
  std::uint32_t norm_gain = 0, norm_bias = 0, head = 0;  // in the last part; head: table, if it is tied
  std::vector<Layer> layer;                              // those of the part

  long head_size() const { return width / heads; }
};

// The tensors of a GPT in the order of GPT2LMHeadModel's state_dict. Errors: Errc::usage (no vocabulary or
// one above vocabulary_max, no layers, an embedding that its heads do not divide ...), Errc::limit (too many
// parameters).
Result<ParamLayout> gpt_layout(const ModelConfig& config);
// The shape of gpt_layout(config). Errors: as gpt_layout.
Result<GptShape> gpt_shape(const ModelConfig& config, const ParamLayout& layout);
// The shape of the layout of a whole GPT with `heads` heads, from wherever it comes. Names without the prefix
// `transformer.` are accepted. Errors: Errc::mismatch, naming the tensor that is missing or of another shape.
Result<GptShape> gpt_shape(const ParamLayout& layout, std::uint32_t heads);

// Errors: as gpt_layout.
Result<std::unique_ptr<Model>> make_gpt(const ModelConfig& config);

class Gpt final : public LanguageModel {
 public:
  // Requires: `shape` is of `layout`.
  Gpt(ParamLayout layout, GptShape shape);

  // GPT-2's: normal of deviation 0.02, projections that feed the sum over layers 0.02 / sqrt(2 layers), gains
  // 1, biases 0.
  TensorStart start_of(const TensorInfo& tensor) const override;
  // Query, key and value projections are three matrices side by side; the tables are none.
  std::uint32_t hidden_matrices(const TensorInfo& tensor) const override;
  std::size_t memory_bytes() const override;
  void adapt(Adapters& adapters) override { freeze(adapters); }

 private:
  // The activations that one layer keeps for the backward pass; rows are the tokens of a batch, d the embedding. All
  // floats are in memory_.
  struct Layer {
    LayerNorm norm_1, norm_2;
    Attention attention;
    float* normed_1 = nullptr;   // [rows][d]
    float* qkv = nullptr;        // [rows][3 d]
    float* looked = nullptr;     // [rows][d], the output of attention
    float* middle = nullptr;     // [rows][d], the sum after attention
    float* normed_2 = nullptr;   // [rows][d]
    float* wide = nullptr;       // [rows][4 d]
    float* activated = nullptr;  // [rows][4 d], gelu(wide)
    float* out = nullptr;        // [rows][d]
  };

  void make_room(long rows);
  Top run(const float* params, const TokenBatch& batch, const float* below, const float* state) override;
  // A projection with its adapter, if it has one. `weight`, `bias`: offsets. The rest as Projection.
  void project(const float* params, Projection::Shape shape, const float* x, std::uint32_t weight, std::uint32_t bias,
               const float* residual, float* y, float* activated);
  void project_back(const float* params, Projection::Shape shape, const float* x, const float* before,
                    std::uint32_t weight, std::uint32_t bias, const float* change, float* gradient, float* x_change);
  void forward_layer(const float* params, std::size_t index, Attention::Shape shape, const float* x);
  void run_back(const float* params, const TokenBatch& batch, const float* below, float* gradient,
                float* below_change) override;
  void backward_layer(const float* params, std::size_t index, Attention::Shape shape, const float* x,
                      float* gradient);

  GptShape shape_;
  std::vector<Layer> layers_;
  LargeVector<float> memory_;    // of all activations, in one piece, in large pages
  long rows_max_ = 0;            // for which there is room
  float* embedded_ = nullptr;    // [rows][d], before the first layer; in the first part
  float* normed_ = nullptr;      // [rows][d], after the last norm; in the last part
  LayerNorm norm_;
  Projection projection_;
  float* change_ = nullptr;      // [rows][d], d loss / d the sum, from the last layer to the first
  float* inner_ = nullptr;       // [rows][d], changes within a layer
  float* wide_ = nullptr;        // [rows][4 d], the same
};

}  // namespace rumor::models
