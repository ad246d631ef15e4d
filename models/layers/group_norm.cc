#include "models/layers/group_norm.h"

#include <algorithm>
#include <cmath>

#include "models/kernels/kernels.h"
#include "runtime/base/check.h"

namespace rumor::models {

GroupNorm::GroupNorm(PictureShape shape, std::uint32_t groups)
    : shape_(shape), groups_(groups), group_channels_(groups == 0 ? 0 : shape.channels / groups) {
  RUMOR_CHECK(groups >= 1);
  RUMOR_CHECK(group_channels_ * groups == shape.channels);
}

void GroupNorm::forward(const float* weight, const float* bias, const float* x, float* y,
                        float* saved) const {
  const KernelTable& k = kernels();
  const auto pixels = static_cast<long>(shape_.pixels()), channels = static_cast<long>(shape_.channels);
  float *mean = saved, *inverse = saved + channels;
  std::vector<float> sum(shape_.channels), scale(shape_.channels), shift(shape_.channels);
  const double values = static_cast<double>(shape_.pixels()) * group_channels_;
  const auto of_group = [&](std::uint32_t group) {
    double total = 0;
    for (std::uint32_t c = 0; c < group_channels_; ++c) total += sum[group * group_channels_ + c];
    return total / values;
  };
  const float one = 1;
  k.matmul(1, channels, pixels, {&one, 0, 0}, x, channels, sum.data(), channels, Start::zero);
  for (std::uint32_t group = 0; group < groups_; ++group)
    std::fill_n(mean + group * group_channels_, group_channels_, static_cast<float>(of_group(group)));
  k.centred_dots(pixels, channels, x, mean, x, mean, sum.data());
  for (std::uint32_t group = 0; group < groups_; ++group) {
    const auto deviation = static_cast<float>(1 / std::sqrt(of_group(group) + epsilon));
    std::fill_n(inverse + group * group_channels_, group_channels_, deviation);
  }
  for (long c = 0; c < channels; ++c) {
    scale[c] = weight[c] * inverse[c];
    shift[c] = bias[c] - mean[c] * scale[c];
  }
  k.scale_columns(pixels, channels, x, scale.data(), shift.data(), y);
}

// With n = (x - mean) / deviation and g = change * weight, and means over the group:
//   d x = (g - mean(g) - n * mean(g * n)) / deviation
// which is change * scale + x * x_scale + shift, a line for each channel.
void GroupNorm::backward(const float* weight, const float* x, const float* saved, float* change,
                         float* weight_gradient, float* bias_gradient) const {
  const KernelTable& k = kernels();
  const auto pixels = static_cast<long>(shape_.pixels()), channels = static_cast<long>(shape_.channels);
  const float *mean = saved, *inverse = saved + channels;
  const std::vector<float> zeros(shape_.channels);
  std::vector<float> change_sum(shape_.channels), dot(shape_.channels);  // of change, of change * (x - mean)
  std::vector<float> scale(shape_.channels), x_scale(shape_.channels), shift(shape_.channels);
  const float one = 1;
  k.matmul(1, channels, pixels, {&one, 0, 0}, change, channels, change_sum.data(), channels, Start::zero);
  k.centred_dots(pixels, channels, x, mean, change, zeros.data(), dot.data());
  const double values = static_cast<double>(shape_.pixels()) * group_channels_;
  for (std::uint32_t group = 0; group < groups_; ++group) {
    const std::uint32_t begin = group * group_channels_, end = begin + group_channels_;
    const double inverse_of_group = inverse[begin];
    double mean_of_change = 0, mean_of_product = 0;
    for (std::uint32_t c = begin; c < end; ++c) {
      mean_of_change += static_cast<double>(weight[c]) * change_sum[c];
      mean_of_product += static_cast<double>(weight[c]) * dot[c] * inverse_of_group;
    }
    mean_of_change /= values;
    mean_of_product /= values;
    const double slope = -inverse_of_group * inverse_of_group * mean_of_product;
    for (std::uint32_t c = begin; c < end; ++c) {
      scale[c] = weight[c] * inverse[c];
      x_scale[c] = static_cast<float>(slope);
      shift[c] = static_cast<float>(-inverse_of_group * mean_of_change - slope * mean[c]);
      weight_gradient[c] += dot[c] * inverse[c];
      bias_gradient[c] += change_sum[c];
    }
  }
  k.blend_columns(pixels, channels, x, x_scale.data(), shift.data(), scale.data(), change);
}

}  // namespace rumor::models
