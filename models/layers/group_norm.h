// GroupNorm (Wu, He 2018): in each picture separately, every group of channels is normalised to mean 0 and deviation 1,
// then each channel is scaled and shifted. It equals nn.GroupNorm(groups, channels): weight and bias [channels], the
// variance over all values (not one less), epsilon 1e-5.
//
//   y = (x - mean) / deviation * weight + bias,   deviation = sqrt(variance + epsilon)
//
// Bits: sums of a channel run over the pixels, in float; a group's over its channels, in double.
// Thread: const calls from any number of threads.
#pragma once

#include <vector>

#include "models/layers/picture.h"

namespace rumor::models {

class GroupNorm {
 public:
  static constexpr double epsilon = 1e-5;

  // Requires: groups >= 1 divides shape.channels.
  GroupNorm(PictureShape shape, std::uint32_t groups);

  PictureShape shape() const { return shape_; }
  // Floats that forward() leaves for backward(): mean and 1 / deviation of each channel's group.
  std::size_t saved() const { return 2 * std::size_t{shape_.channels}; }

  // One picture; x and y [height][width][channels], apart.
  void forward(const float* weight, const float* bias, const float* x, float* y, float* saved) const;
  // change: d loss / d y comes, d loss / d x goes. weight_gradient and bias_gradient [channels] += ....
  void backward(const float* weight, const float* x, const float* saved, float* change,
                float* weight_gradient, float* bias_gradient) const;

 private:
  PictureShape shape_;
  std::uint32_t groups_, group_channels_;
};

}  // namespace rumor::models
