// DeviceLlama: the Llama of models/families/llama.h on a GPU (gpu/models/language_model.h), with all of that family's
// options: grouped heads, a head of its own, biases of queries, keys and values, scaled rotary positions.
//
// One product makes queries, keys and values, and one makes gate and up, since their weights are neighbours in the
// parameters. With biases between them, the weights of a layer are first copied side by side.
//
// Memory, device, for each token of the largest batch seen, with d the embedding, f the feed-forward width, q the
// heads' queries together and r = q + 2 kv_heads * head_size: per layer 4 d + r + q + 3 f floats, twice; d + 2 f more
// for changes; and that of the base. With bf16 half of it, but for two d per layer. One table of rotations: context *
// head_size floats.
#pragma once

#include <vector>

#include "gpu/models/language_model.h"
#include "models/families/llama.h"

namespace rumor::gpu {

class DeviceLlama final : public DeviceLanguageModel {
 public:
  // Refers to `gpu`. logits_max: see usual_logits. Errors: those of models::make_llama(); Errc::usage for heads wider
  // than head_size_max, or a vocabulary above 65,536; Errc::limit for a table of rotations without room.
  static Result<DeviceLlama> create(const Gpu& gpu, const models::ModelConfig& config, Precision precision,
                                    std::size_t logits_max = usual_logits);

  std::size_t memory_bytes() const override;

 private:
  // Activations that one layer keeps; d numbers per row unless noted.
  struct Layer {
    float *scale_1 = nullptr, *scale_2 = nullptr;  // of the norms; one
    Numbers normed_1;
    Numbers qkv;                              // qkv_row(), queries and keys rotated
    float *top = nullptr, *weight = nullptr;  // heads
    Numbers looked;                           // looked_row(), the output of attention
    float* middle = nullptr;                  // the sum after attention
    Numbers normed_2;
    Numbers wide;          // 2 f: gate and up
    Numbers active;        // f: silu(gate) * up
    float* out = nullptr;  // the sum after this layer, once the next norm has computed it
  };
  using Offsets = models::LlamaShape::Layer;

  DeviceLlama(const Gpu& gpu, ParamLayout layout, models::LlamaShape shape, Precision precision,
              std::size_t logits_max);
  Result<void> make_rotations();
  void add_arrays(std::size_t rows, PlacedArrays& all) override;
  void forward_layers() override;
  void backward_layers(float* gradient) override;
  void norm(float* scale, const float* x, float* more, std::uint32_t gain, Numbers y);
  void norm_sum(std::size_t i, float* scale, std::uint32_t gain, Numbers y);
  void norm_back(const float* scale, const float* x, std::uint32_t gain, float* gradient);
  ConstNumbers qkv_weights(const Offsets& at);
  void qkv_back(const Offsets& at, ConstNumbers x, float* gradient);
  void project(ConstNumbers x, std::uint32_t in, std::uint32_t out, ConstNumbers weight, Numbers y);
  void weight_back(ConstNumbers x, std::uint32_t in, std::uint32_t out, ConstNumbers change, float* gradient);
  void input_back(std::uint32_t in, std::uint32_t out, ConstNumbers change, ConstNumbers weight, Numbers x_change);
  AttentionArgs attention_of(const Layer& layer) const;
  RotaryArgs rotary_of(const Offsets& at, Numbers qkv) const;
  void forward_layer(std::size_t i);
  void feed_back(const Layer& layer, const Offsets& at, float* gradient);
  void backward_layer(std::size_t i, float* gradient);
  // The sum before layer i; before the last norm, i is the number of layers.
  const float* sum_before(std::size_t i) const { return i == 0 ? arrays().embedded : layers_[i - 1].out; }
  std::uint32_t heads() const { return static_cast<std::uint32_t>(shape_.heads); }
  std::uint32_t groups() const { return static_cast<std::uint32_t>(shape_.groups); }
  std::uint32_t head_size() const { return static_cast<std::uint32_t>(shape_.head_size); }
  std::uint32_t feed_forward() const { return static_cast<std::uint32_t>(shape_.feed_forward); }
  std::uint32_t looked_row() const { return heads() * head_size(); }
  std::uint32_t keys_row() const { return groups() * head_size(); }
  std::uint32_t qkv_row() const { return looked_row() + 2 * keys_row(); }

  models::LlamaShape shape_;
  std::vector<Layer> layers_;
  DeviceArray<float> cosine_, sine_;  // [context][head_size / 2]
  float* scale_ = nullptr;            // [rows], of the last norm
  Numbers wide_;                      // [rows][2 f or qkv_row()], changes within a layer
  Numbers narrow_;                    // [rows][f or looked_row()], likewise
  Numbers side_by_side_;              // [qkv_row()][d], with biases: weights of one layer
  float* dot_ = nullptr;              // [rows][heads], with bf16 twice
  float* partial_ = nullptr;          // of sums over rows
  float* bias_change_ = nullptr;      // [qkv_row()], with biases
};

}  // namespace rumor::gpu
