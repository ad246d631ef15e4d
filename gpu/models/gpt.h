// DeviceGpt: the GPT of models/families/gpt.h on a GPU (gpu/models/language_model.h).
//
// Memory, device, for each token of the largest batch seen: 16 floats per width and layer, 8 more per width, and the
// logits. With bf16: 9 floats per width and layer, 6 more per width, and 2 bytes per parameter.
#pragma once

#include <vector>

#include "gpu/models/language_model.h"
#include "models/families/gpt.h"

namespace rumor::gpu {

class DeviceGpt final : public DeviceLanguageModel {
 public:
  // Refers to `gpu`. logits_max: see usual_logits. Errors: those of models::make_gpt(); Errc::usage for heads wider
  // than head_size_max, or a vocabulary above 65,536.
  static Result<DeviceGpt> create(const Gpu& gpu, const models::ModelConfig& config, Precision precision,
                                  std::size_t logits_max = usual_logits);

 private:
  // Values that a norm keeps for the backward pass, one float per row each.
  struct Norm {
    float* mean = nullptr;
    float* scale = nullptr;
  };
  // Activations that one layer keeps; d numbers per row unless noted.
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
  void add_arrays(std::size_t rows, PlacedArrays& all) override;
  void forward_layers() override;
  void backward_layers(float* gradient) override;
  void norm(const Norm& keeps, const float* x, float* more, std::uint32_t gain, std::uint32_t bias, Numbers y);
  void norm_sum(std::size_t i, const Norm& keeps, std::uint32_t gain, std::uint32_t bias, Numbers y);
  void norm_back(const Norm& kept, const float* x, std::uint32_t gain, std::uint32_t bias, float* gradient);
  void project(const Projected& p, Numbers y, Numbers before);
  void project_back(const Projected& p, Numbers before, ConstNumbers change, float* gradient, Numbers x_change);
  AttentionArgs attention_of(const Layer& layer) const;
  void forward_layer(std::size_t i);
  void backward_layer(std::size_t i, float* gradient);
  // The sum before layer i; before the last norm, i is the number of layers.
  const float* sum_before(std::size_t i) const { return i == 0 ? arrays().embedded : layers_[i - 1].out; }

  models::GptShape shape_;
  std::vector<Layer> layers_;
  Norm norm_;
  Numbers wide_;              // [rows][4 d], changes within a layer
  float* dot_ = nullptr;      // [rows][heads], with bf16 twice
  float* partial_ = nullptr;  // of sums over rows
};

}  // namespace rumor::gpu
