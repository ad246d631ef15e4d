// DeviceGpt: the GPT of models/families/gpt.h on a GPU (gpu/models/device_model.h), made of the slots of
// gpu/device/model_table.h.
//
// The next norm computes the sum over layers, so the sum goes through memory once less. The logits of a large
// vocabulary are the largest array: they exist for some rows at a time.
//
// With bf16, the operands of products are bfloat16 from the start. Parameters are rounded once per step, and values
// that pass between a kernel and a product never exist in float32. Sums over layers, their changes and gradients are
// float32.
//
// Memory, device, for each token of the largest batch seen: 16 floats per width and layer, 8 more per width, logits
// (128 MiB at most), and the scratch of products (gpu/device/model_table.h). With bf16: 9 floats per width and layer, 6
// more per width, and 2 bytes per parameter.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gpu/device/placed_arrays.h"
#include "gpu/device/products.h"
#include "gpu/models/device_model.h"
#include "models/families/gpt.h"

namespace rumor::gpu {

class DeviceGpt final : public DeviceModel {
 public:
  // Refers to `gpu`. logits_max: floats at a time, or twice as many bfloat16 numbers, but at least one row. Errors:
  // those of models::make_gpt(); Errc::usage for heads wider than head_size_max.
  static Result<DeviceGpt> create(const Gpu& gpu, const models::ModelConfig& config, Precision precision,
                                  std::size_t logits_max = std::size_t{32} << 20);

  const ParamLayout& layout() const override { return layout_; }
  Result<void> send(const models::Batch& batch, std::uint32_t all_rows) override;
  Result<void> compute(const DeviceArray<float>& params, const DeviceArray<float>& gradient) override;
  Result<float> loss() override;
  Result<models::Evaluation> evaluate(const DeviceArray<float>& params, const models::Batch& batch) override;
  std::size_t memory_bytes() const override;

 private:
  // Values that a norm keeps for the backward pass, one float per row each.
  struct Norm {
    float* mean = nullptr;
    float* scale = nullptr;
  };
  // Activations that one layer keeps; d numbers per row unless noted. All are in memory_.
  struct Layer {
    Norm norm_1, norm_2;
    Numbers normed_1;
    Numbers qkv;                              // 3 d
    float *top = nullptr, *weight = nullptr;  // heads
    Numbers looked;                           // output of attention
    float* middle = nullptr;                  // the sum after attention
    Numbers normed_2;
    Numbers wide, activated;  // 4 d each; activated = gelu(wide)
    float* out = nullptr;     // the sum after this layer, once the next norm has computed it
  };
  struct Projected {
    ConstNumbers x;  // [rows, in]
    std::uint32_t in, out;
    std::uint32_t weight, bias;  // positions in the parameters: [in][out], [out]
  };

  DeviceGpt(const Gpu& gpu, ParamLayout layout, models::GptShape shape, Precision precision, std::size_t logits_max);
  PlacedArrays arrays(std::size_t rows, std::size_t piece_rows);
  Result<void> make_room(std::uint32_t batch);
  Result<void> send_tokens(const models::TokenBatch& batch);
  void send_rows_by_token(const models::TokenBatch& batch);
  void norm(const Norm& keeps, const float* x, float* more, std::uint32_t gain, std::uint32_t bias, Numbers y);
  void norm_back(const Norm& kept, const float* x, std::uint32_t gain, std::uint32_t bias, float* gradient);
  void project(const Projected& p, Numbers y, Numbers before);
  void project_back(const Projected& p, Numbers before, ConstNumbers change, float* gradient, Numbers x_change);
  AttentionArgs attention_of(const Layer& layer) const;
  // The sum before layer i; before the last norm, i is the number of layers.
  const float* sum_before(std::size_t i) const { return i == 0 ? embedded_ : layers_[i - 1].out; }
  void norm_sum(std::size_t i, const Norm& keeps, std::uint32_t gain, std::uint32_t bias, Numbers y);
  void forward();
  void forward_layer(std::size_t i);
  void compare(float* gradient);
  void backward(float* gradient);
  void backward_layer(std::size_t i, float* gradient);
  Result<double> total_loss();
  models::TokenBatch tokens_of(const models::Batch& batch) const;
  Result<void> take(const DeviceArray<float>& params);
  // Parameters from `at` on, in the type that products read.
  ConstNumbers factors(std::uint32_t at) const {
    if (bf16_) return rounded_params_.data() + at;
    return params_ + at;
  }
  // change_, in the type that products read.
  ConstNumbers change() const {
    if (bf16_) return rounded_change_;
    return change_;
  }
  // Numbers from one row of logits to the next: rows begin where products read and write fastest.
  std::size_t logits_stride() const { return (static_cast<std::size_t>(shape_.vocabulary) + 63) / 64 * 64; }
  // The largest number of different tokens in a batch of rows_.
  std::uint32_t distinct_max() const { return std::min(rows_, static_cast<std::uint32_t>(shape_.vocabulary)); }
  std::uint32_t width() const { return static_cast<std::uint32_t>(shape_.width); }
  std::uint32_t context() const { return static_cast<std::uint32_t>(shape_.context); }

  const Gpu* gpu_;
  ParamLayout layout_;
  models::GptShape shape_;
  Products products_;
  bool bf16_;
  std::size_t logits_max_;
  // State of the call in progress.
  const float* params_ = nullptr;
  DeviceArray<Bf16> rounded_params_;    // with bf16
  std::uint32_t batch_ = 0, rows_ = 0;  // rows: tokens
  std::uint32_t all_rows_ = 0;          // tokens that the loss is divided by

  std::uint32_t batch_max_ = 0, piece_rows_ = 0;  // that there is room for
  std::vector<Layer> layers_;
  Norm norm_;
  DeviceArray<float> memory_;
  float* embedded_ = nullptr;  // [rows][d], before the first layer
  Numbers normed_;             // [rows][d], after the last norm
  float* change_ = nullptr;    // [rows][d], d loss / d the sum of layers, from the last layer to the first
  Numbers rounded_change_;     // the same, with bf16
  Numbers inner_;              // [rows][d], changes within a layer
  Numbers wide_;               // [rows][4 d], likewise
  float* dot_ = nullptr;       // [rows][heads]
  float* partial_ = nullptr;   // of sums over rows
  float* row_loss_ = nullptr;  // [rows]
  Numbers logits_;             // [rows of a piece][vocabulary], with gaps
  DeviceArray<double> total_loss_;  // of each piece
  DeviceArray<std::uint16_t> token_, target_, distinct_;
  DeviceArray<std::uint32_t> row_, first_;  // rows by token, for the backward pass of the embedding
};

}  // namespace rumor::gpu
