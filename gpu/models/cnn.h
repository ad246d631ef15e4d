// DeviceCnn: the convolutional network of models/families/cnn.h on a GPU (gpu/models/device_model.h), made of the
// steps of its plan (models/families/cnn_plan.h) and the slots of gpu/device/picture_table.h.
//
// Every step takes all pictures of a batch before the next begins. A convolution is a product of its weights with what
// windows see; that is nine times the picture, so it exists for some pictures at a time.
//
// Memory, device, for each row of the largest batch seen: two floats for every value of every map, what
// gpu/models/dense.h says of the head; and what windows see (256 MiB at most, but a picture at least), and what
// products take.
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
  // Refers to `gpu`. seen_max: floats that windows see at a time. Errors: those of models::make_cnn().
  static Result<DeviceCnn> create(const Gpu& gpu, const models::ModelConfig& config, Precision precision,
                                  std::size_t seen_max = std::size_t{64} << 20);

  const ParamLayout& layout() const override { return layout_; }
  Result<void> send(const models::Batch& batch, std::uint32_t all_rows) override;
  Result<void> compute(const DeviceArray<float>& params, const DeviceArray<float>& gradient) override;
  Result<float> loss() override { return head_.loss(); }
  // In pieces of 64 pictures.
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
  // The number of pictures of this shape, of `rows`, whose windows fit at a time.
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
  std::uint32_t rows_ = 0, rows_max_ = 0;  // that were sent last; for which there is room
  std::vector<Map> maps_;
  std::vector<Norm> norms_;
  DeviceArray<float> memory_;           // of maps and norms
  DeviceArray<float> x_, features_;     // [rows][channels][pixels]: what comes in, and what the head sees
  DeviceArray<float> features_change_;  // d loss / d features_
  DeviceArray<float> seen_;             // [pictures of a piece][pixels][channels][9]
  DeviceArray<float> scratch_;          // of GroupNorm, and of sums over pixels
};

}  // namespace rumor::gpu
