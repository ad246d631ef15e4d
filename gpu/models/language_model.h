// DeviceLanguageModel: what all models of text have in common on a GPU (models/families/language_model.h, and
// gpu/models/device_model.h). Rows of tokens come in, an embedding turns them into vectors, the family's layers work on
// these, and a table of token vectors predicts the next token. Layers and head are made of the slots of
// gpu/device/model_table.h.
//
// The next norm computes the sum over layers, so the sum goes through memory once less. The logits of a large
// vocabulary are the largest array: they exist for some rows at a time.
//
// With bf16, the operands of products are bfloat16 from the start. Parameters are rounded once per step, and values
// that pass between a kernel and a product never exist in float32. Sums over layers, their changes and gradients are
// float32.
//
// Memory, device, for each token of the largest batch seen: 4 floats per width, logits (128 MiB at most), what the
// family's layers keep, and the scratch of products (gpu/device/model_table.h). With bf16: 3.5 floats per width, and
// 2 bytes per parameter.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "gpu/device/placed_arrays.h"
#include "gpu/device/products.h"
#include "gpu/models/device_model.h"

namespace rumor::gpu {

class DeviceLanguageModel : public DeviceModel {
 public:
  // Logits at a time: floats, or twice as many bfloat16 numbers, but at least one row.
  static constexpr std::size_t usual_logits = std::size_t{32} << 20;

  const ParamLayout& layout() const override { return layout_; }
  Result<void> send(const models::Batch& batch, std::uint32_t all_rows) override;
  Result<void> compute(const DeviceArray<float>& params, const DeviceArray<float>& gradient) override;
  Result<float> loss() override;
  Result<models::Evaluation> evaluate(const DeviceArray<float>& params, const models::Batch& batch) override;
  std::size_t memory_bytes() const override;

 protected:
  struct Sizes {
    std::uint32_t vocabulary, context, width;
    std::uint32_t table;  // offset of the embedding's table, [vocabulary, width]
    std::uint32_t head;   // offset of the head's, [vocabulary, width]: another one or the same
    std::optional<std::uint32_t> position = std::nullopt;  // offset of the table of positions, [context, width]
  };
  // Arrays between head and layers, [rows][width].
  struct Arrays {
    float* embedded = nullptr;  // before the first layer
    Numbers normed;             // after the last norm
    float* change = nullptr;    // d loss / d the sum of layers, from the last layer to the first
    Numbers rounded_change;     // the same, with bf16
    Numbers inner;              // changes within a layer
  };

  // Refers to `gpu`.
  DeviceLanguageModel(const Gpu& gpu, ParamLayout layout, Sizes sizes, Precision precision, std::size_t logits_max);

  // Errors: Errc::usage for a vocabulary beyond 16 bits, and for heads wider than head_size_max, with `remedy`.
  static Result<void> check_possible(long vocabulary, long head_size, std::string_view remedy);

  // Names all arrays that the layers need for `rows` tokens, in one piece of memory with those of this class.
  virtual void add_arrays(std::size_t rows, PlacedArrays& all) = 0;
  // arrays().embedded -> arrays().normed, for the rows() of the batch.
  virtual void forward_layers() = 0;
  // inner, d loss / d normed -> change, which is zero before: d loss / d embedded. Overwrites the gradients of all
  // parameters but those of the tables.
  virtual void backward_layers(float* gradient) = 0;

  const Gpu& gpu() const { return *gpu_; }
  const ModelTable& slots() const { return gpu_->table().model; }
  Products& products() { return products_; }
  const Arrays& arrays() const { return arrays_; }
  bool bf16() const { return bf16_; }
  std::uint32_t batch() const { return batch_; }
  std::uint32_t rows() const { return rows_; }  // tokens of the batch
  std::uint32_t width() const { return sizes_.width; }
  std::uint32_t context() const { return sizes_.context; }
  const float* params() const { return params_; }
  // Parameters from `at` on, in the type that products read.
  ConstNumbers factors(std::uint32_t at) const {
    if (bf16_) return rounded_params_.data() + at;
    return params_ + at;
  }
  // arrays().change, in the type that products read.
  ConstNumbers change() const {
    if (bf16_) return arrays_.rounded_change;
    return arrays_.change;
  }

 private:
  Result<void> make_room(std::uint32_t batch);
  PlacedArrays all_arrays(std::size_t rows, std::size_t piece_rows);
  Result<void> send_tokens(const models::TokenBatch& batch);
  void send_rows_by_token(const models::TokenBatch& batch);
  void forward();
  void compare(float* gradient);
  void backward(float* gradient);
  Result<double> total_loss();
  models::TokenBatch tokens_of(const models::Batch& batch) const;
  Result<void> take(const DeviceArray<float>& params);
  // Numbers from one row of logits to the next: rows begin where products read and write fastest.
  std::size_t logits_stride() const { return (std::size_t{sizes_.vocabulary} + 63) / 64 * 64; }
  std::uint32_t padded_vocabulary() const;
  // The largest number of different tokens in a batch of rows_.
  std::uint32_t distinct_max() const { return std::min(rows_, sizes_.vocabulary); }

  const Gpu* gpu_;
  ParamLayout layout_;
  Sizes sizes_;
  Products products_;
  bool bf16_;
  std::size_t logits_max_;
  // State of the call in progress.
  const float* params_ = nullptr;
  DeviceArray<Bf16> rounded_params_;    // with bf16
  std::uint32_t batch_ = 0, rows_ = 0;  // rows: tokens
  std::uint32_t all_rows_ = 0;          // tokens that the loss is divided by

  std::uint32_t batch_max_ = 0, piece_rows_ = 0;  // that there is room for
  DeviceArray<float> memory_;
  Arrays arrays_;
  float* row_loss_ = nullptr;       // [rows]
  Numbers logits_;                  // [rows of a piece][vocabulary], with gaps
  DeviceArray<double> total_loss_;  // of each piece
  DeviceArray<std::uint16_t> token_, target_, distinct_;
  DeviceArray<std::uint32_t> row_, first_;  // rows by token, for the backward pass of the embedding
};

}  // namespace rumor::gpu
