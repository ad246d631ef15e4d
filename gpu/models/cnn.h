// DeviceCnn: the convolutional network of models/families/cnn.h on a GPU (gpu/models/device_model.h). It runs the steps
// of its plan (models/families/cnn_plan.h) with the slots of gpu/device/picture_table.h.
//
// Every step takes all pictures of a batch before the next step begins. A convolution is a product of its weights with
// the windows of the pictures. Windows take nine times the memory of the pictures, so they exist for some pictures at a
// time.
//
// Memory, device, for each row of the largest batch seen: two floats per value of every map, and the head's memory as
// gpu/models/dense.h says. Besides: the windows (at most 256 MiB, but at least those of one picture), and the scratch
// of products.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/device/placed_arrays.h"
#include "gpu/models/dense.h"
#include "gpu/models/device_model.h"
#include "models/families/cnn_plan.h"

namespace rumor::gpu {

class DeviceCnn final : public DeviceModel {
 public:
  // Refers to `gpu`. seen_max: floats of windows at a time. Errors: those of models::make_cnn().
  static Result<DeviceCnn> create(const Gpu& gpu, const models::ModelConfig& config, Precision precision,
                                  std::size_t seen_max = std::size_t{64} << 20);

  const ParamLayout& layout() const override { return layout_; }
  Result<void> send(const models::Batch& batch, std::uint32_t all_rows) override;
  Result<void> compute(const DeviceArray<float>& params, const DeviceArray<float>& gradient) override;
  Result<float> loss() override { return head_.loss(); }
  // Evaluates in pieces of 64 pictures.
  Result<models::Evaluation> evaluate(const DeviceArray<float>& params, const models::Batch& batch) override;
  std::size_t memory_bytes() const override;

 private:
  // Maps of all pictures of a batch: [rows][height][width][channels].
  struct Map {
    float* values = nullptr;
    float* change = nullptr;  // d loss / d values
  };
  struct Norm {
    float *mean = nullptr, *scale = nullptr;  // [rows][groups]
  };

  DeviceCnn(const Gpu& gpu, ParamLayout layout, models::CnnPlan plan, std::uint32_t groups, Precision precision,
            std::size_t seen_max);
  Result<void> make_room(std::uint32_t rows);
  Pictures pictures_of(std::uint32_t map) const;
  std::uint32_t offset_of(const models::CnnStep& step, std::uint32_t next = 0) const {
    return layout_.tensors()[step.tensor + next].offset;
  }
  Result<void> send_pictures(std::span<const float> x, std::uint32_t rows);
  void forward(const float* params);
  void forward_step(const models::CnnStep& step, const float* params);
  void convolve(const models::CnnStep& step, const float* params);
  void norm(const models::CnnStep& step, const float* params);
  void backward_step(const models::CnnStep& step, const float* params, float* gradient);
  void convolve_back(const models::CnnStep& step, const float* params, float* gradient);
  void norm_back(const models::CnnStep& step, const float* params, float* gradient);
  // How many of `rows` pictures of this shape have windows that fit at a time.
  std::uint32_t at_once(models::PictureShape from, std::uint32_t rows) const;
  template <class Work>  // work(the next pictures of `from`, number of the first)
  void each_piece(Pictures from, const Work& work) const;

  const Gpu* gpu_;
  ParamLayout layout_;
  models::CnnPlan plan_;
  std::uint32_t groups_;
  Products products_;
  DeviceDense head_;
  std::size_t seen_max_;
  std::uint32_t rows_ = 0, rows_max_ = 0;  // that were sent last; that there is room for
  std::vector<Map> maps_;
  std::vector<Norm> norms_;
  DeviceArray<float> memory_;           // of maps and norms
  DeviceArray<float> x_, features_;     // [rows][channels][pixels]: the input, and the input of the head
  DeviceArray<float> features_change_;  // d loss / d features_
  DeviceArray<float> seen_;             // [pictures of a piece][pixels][channels][9]
  DeviceArray<float> scratch_;          // of GroupNorm, and of sums over pixels
};

}  // namespace rumor::gpu
