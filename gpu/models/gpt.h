// DeviceGpt: the GPT of models/families/gpt.h on a GPU (gpu/models/device_model.h), made of the slots of
// gpu/device/model_table.h.
//
// A sum over layers is made where it is normed next, so it goes through memory once less. Logits of a large vocabulary
// are the largest thing there is: they exist for some rows at a time.
//
// With bf16, what products read is bfloat16 from where it comes into being: parameters are rounded once a step, and
// what goes from one kernel to a product, or from a product to a kernel, never exists in float32. Sums over layers and
// their changes do, and so do gradients.
//
// Memory, device, for each token of the largest batch seen: 16 floats for every width and layer, 8 more for every
// width, logits (128 MiB at most), and what products take (gpu/device/model_table.h). With bf16 9 floats and 6, and 2
// bytes a parameter.
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
  // Refers to `gpu`. logits_max: floats at a time, or twice as many bfloat16, but a row at least. Errors: those of
  // models::make_gpt(); Errc::usage for heads wider than head_size_max.
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
    Numbers looked;                           // what attention brings
    float* middle = nullptr;                  // the sum after attention
    Numbers normed_2;
    Numbers wide, activated;  // 4 d each; activated = gelu(wide)
    float* out = nullptr;     // the sum after this layer, once the next norm has made it
  };
  struct Projected {
    ConstNumbers x;  // [rows, in]
    std::uint32_t in, out;
    std::uint32_t weight, bias;  // where they lie in the parameters: [in][out], [out]
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
  // Parameters from `at` on, as products read them.
  ConstNumbers factors(std::uint32_t at) const {
    if (bf16_) return rounded_params_.data() + at;
    return params_ + at;
  }
  // change_, as products read it.
  ConstNumbers change() const {
    if (bf16_) return rounded_change_;
    return change_;
  }
  // Numbers from one row of logits to the next: rows begin where products read and write the fastest.
  std::size_t logits_stride() const { return (static_cast<std::size_t>(shape_.vocabulary) + 63) / 64 * 64; }
  // Different tokens that a batch of rows_ may have.
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

  std::uint32_t batch_max_ = 0, piece_rows_ = 0;  // for which there is room
  std::vector<Layer> layers_;
  Norm norm_;
  DeviceArray<float> memory_;
  float* embedded_ = nullptr;  // [rows][d], before the first layer
  Numbers normed_;             // [rows][d], after the last norm
  float* change_ = nullptr;    // [rows][d], d loss / d the sum, from the last layer to the first
  Numbers rounded_change_;     // the same, with bf16
  Numbers inner_;              // [rows][d], changes within a layer
  Numbers wide_;               // [rows][4 d], likewise
  float* dot_ = nullptr;       // [rows][heads]
  float* partial_ = nullptr;   // of sums over rows
  float* row_loss_ = nullptr;  // [rows]
  Numbers logits_;             // [rows of a piece][vocabulary], with gaps
  DeviceArray<double> total_loss_;  // of each piece
  DeviceArray<std::uint16_t> token_, target_, distinct_;
  DeviceArray<std::uint32_t> row_, first_;  // rows by token, for the way back of the embedding
};

}  // namespace rumor::gpu
