// Lstm: a language model of one to three recurrent layers (Hochreiter, Schmidhuber 1997; Graves 2013).
//
//   x = table[token];  for each layer: x = lstm(x, state);  logits = x head^T + head bias
//
// Parameters have the names and shapes of a PyTorch module with the members embedding = nn.Embedding(vocabulary,
// embedding), lstm = nn.LSTM(embedding, units, layers) and head = nn.Linear(units, vocabulary): embedding.weight,
// lstm.weight_ih_l0 [4 units, embedding], lstm.weight_hh_l0 [4 units, units], lstm.bias_ih_l0, lstm.bias_hh_l0, ...,
// head.weight, head.bias. The gates are in the order i, f, g, o.
//
// A row of a batch is a window of `context` tokens. Gradients reach back to its beginning and no farther: truncated
// back-propagation through time (Williams, Peng 1990). The state goes on from row to row in Batch::state, [layers][2]
// [units] for each row, out before cell; the caller keeps it (models/data/lanes.h). A batch without one begins with
// zeros.
//
// Cost of a step: 6 operations per recurrent or upper weight and token; the input product of the first layer costs
// that once for each distinct token of the batch. Memory: that of models/layers/lstm_layer.h, and 4 units per token.
//
// Bits: all sums run in kernels (models/kernels/kernel_table.h); any number of threads gives the same.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/families/language_model.h"
#include "models/layers/embedding.h"
#include "models/layers/lstm_layer.h"
#include "runtime/base/large_vector.h"

namespace rumor::models {

// Offsets in the parameter vector.
struct LstmShape {
  struct Layer {
    std::uint32_t ih, hh, bias_ih, bias_hh;
  };
  long vocabulary = 0, embedding = 0, units = 0;
  ModelPart part;                         // of the layers
  std::uint32_t table = 0;                // in the first part
  std::uint32_t head = 0, head_bias = 0;  // in the last part
  std::vector<Layer> layer;               // those of the part

  bool reads_tokens(std::size_t index) const { return index == 0 && part.is_first(); }
  long inputs_of(std::size_t index) const { return reads_tokens(index) ? embedding : units; }
};

// The tensors in the order of the module's state_dict. Errors: Errc::usage (no vocabulary or one above vocabulary_max;
// a number of layers or a width that is not supported), Errc::limit (too many parameters).
Result<ParamLayout> lstm_layout(const ModelConfig& config);
// The shape of lstm_layout(config). Errors: as lstm_layout.
Result<LstmShape> lstm_shape(const ModelConfig& config, const ParamLayout& layout);
// The shape of a layout that lstm_layout made for a whole LSTM. Errors: Errc::mismatch, naming the tensor
// that is missing or of another shape.
Result<LstmShape> lstm_shape(const ParamLayout& layout);

// Errors: as lstm_layout.
Result<std::unique_ptr<Model>> make_lstm(const ModelConfig& config);

class Lstm final : public LanguageModel {
 public:
  // context: tokens of a row. Requires: `shape` is of `layout`.
  Lstm(ParamLayout layout, LstmShape shape, std::uint32_t context);

  // Matrices uniform in +-1 / sqrt(units), as nn.LSTM; the embedding normal of deviation 1/4; biases 0.
  TensorStart start_of(const TensorInfo& tensor) const override;
  std::size_t state_floats() const override { return shape_.layer.size() * 2 * static_cast<std::size_t>(shape_.units); }
  std::size_t memory_bytes() const override;

 private:
  LstmLayer::Shape shape_of(std::size_t layer, long batch) const;
  LstmLayer::Weights weights_of(std::size_t layer, const float* params) const;
  LstmLayer::Input input_of(std::size_t layer, long batch);
  void take_tokens(const float* params, const TokenBatch& batch);
  void take_below(const TokenBatch& batch, const float* below);
  void give_below(const TokenBatch& batch, const float* change, float* below_change) const;
  void begin_with(std::size_t layer, long batch, const float* state);
  Top run(const float* params, const TokenBatch& batch, const float* below, const float* state) override;
  void run_back(const float* params, const TokenBatch& batch, const float* below, float* gradient,
                float* below_change) override;
  void keep_state(long batch, float* state) override;
  void add_embedding_gradient(float* gradient) const;

  LstmShape shape_;
  long context_;
  std::vector<LstmLayer> layers_;
  std::vector<Token> distinct_;  // tokens of the batch, ascending
  std::vector<std::int32_t> row_of_;     // [context][batch], the place of a token in distinct_
  LargeVector<float> embedded_, embedded_change_;  // [distinct][embedding]
  LargeVector<float> below_;                       // [context][batch][padded units], from the border
  LargeVector<float> top_, top_change_;            // [batch][context][units], as the head has its rows
  LargeVector<float> change_, lower_change_;       // [context][batch][padded units], d loss / d out of two layers
};

}  // namespace rumor::models
