#include "models/layers/conv.h"

#include <algorithm>

#include "models/kernels/kernels.h"

namespace rumor::models {

Convolution::Convolution(PictureShape input, std::uint32_t out)
    : input_(input), out_(out), on_input_(window_of(input.channels)), on_output_(window_of(out)) {}

// The window of pixel (y, x) begins at (y, x) of the bordered picture, which is two rows and columns larger.
Convolution::Window Convolution::window_of(std::uint32_t channels) const {
  const std::uint32_t row = (input_.width + 2) * channels;
  Window window;
  for (std::uint32_t y = 0; y < input_.height; ++y)
    for (std::uint32_t x = 0; x < input_.width; ++x)
      window.pixel_at.push_back(static_cast<int>(y * row + x * channels));
  for (std::uint32_t y = 0; y < 3; ++y)
    for (std::uint32_t value = 0; value < 3 * channels; ++value)
      window.value_at.push_back(static_cast<int>(y * row + value));
  return window;
}

const float* Convolution::border(const float* picture, std::uint32_t channels,
                                 LargeVector<float>& scratch) const {
  const std::size_t line = std::size_t{input_.width} * channels, row = line + 2 * std::size_t{channels};
  scratch.resize(row * (input_.height + 2));
  float* to = std::fill_n(scratch.data(), row, 0.0f);
  for (std::uint32_t y = 0; y < input_.height; ++y, picture += line) {
    to = std::fill_n(to, channels, 0.0f);
    to = std::copy_n(picture, line, to);
    to = std::fill_n(to, channels, 0.0f);
  }
  std::fill_n(to, row, 0.0f);
  return scratch.data();
}

void Convolution::order(const float* weight, ConvolutionWeights& ordered) const {
  const std::size_t in = input_.channels;
  ordered.forward.resize(weights());
  ordered.backward.resize(weights());
  for (std::size_t o = 0; o < out_; ++o) {
    for (std::size_t c = 0; c < in; ++c, weight += places) {
      for (std::size_t t = 0; t < places; ++t) {
        ordered.forward[(t * in + c) * out_ + o] = weight[t];
        ordered.backward[(t * out_ + o) * in + c] = weight[places - 1 - t];
      }
    }
  }
}

void Convolution::restore(const float* by_place, float* weight) const {
  const std::size_t in = input_.channels;
  for (std::size_t o = 0; o < out_; ++o) {
    for (std::size_t c = 0; c < in; ++c, weight += places) {
      for (std::size_t t = 0; t < places; ++t) weight[t] = by_place[(t * in + c) * out_ + o];
    }
  }
}

// y[pixels][out] = seen[pixels][9 * in] * weights[9 * in][out]
void Convolution::forward(const ConvolutionWeights& weights, const float* bias, const float* x, float* y,
                          LargeVector<float>& scratch) const {
  const std::size_t pixels = input_.pixels();
  if (bias != nullptr) {
    for (std::size_t p = 0; p < pixels; ++p) std::copy_n(bias, out_, y + p * out_);
  }
  const GatheredView seen{border(x, input_.channels, scratch), on_input_.pixel_at.data(),
                          on_input_.value_at.data()};
  kernels().matmul_gathered(static_cast<long>(pixels), out_, places * input_.channels, seen,
                            weights.forward.data(), out_, y, out_,
                            bias != nullptr ? Start::output : Start::zero);
}

// d weight[9 * in][out] = seen^T[9 * in][pixels] * change[pixels][out]
void Convolution::weight_gradient(const float* x, const float* change_y, float* gradient_by_place,
                                  float* bias_gradient, LargeVector<float>& scratch) const {
  const KernelTable& k = kernels();
  const auto pixels = static_cast<long>(input_.pixels());
  const GatheredView seen{border(x, input_.channels, scratch), on_input_.value_at.data(),
                          on_input_.pixel_at.data()};
  k.matmul_gathered(places * input_.channels, out_, pixels, seen, change_y, out_, gradient_by_place, out_,
                    Start::output);
  const float one = 1;
  if (bias_gradient != nullptr)
    k.matmul(1, out_, pixels, {&one, 0, 0}, change_y, out_, bias_gradient, out_, Start::output);
}

// d x[pixels][in] = seen change[pixels][9 * out] * turned weights[9 * out][in]
void Convolution::input_gradient(const ConvolutionWeights& weights, const float* change_y, float* change_x,
                                 Start start, LargeVector<float>& scratch) const {
  const GatheredView seen{border(change_y, out_, scratch), on_output_.pixel_at.data(),
                          on_output_.value_at.data()};
  kernels().matmul_gathered(static_cast<long>(input_.pixels()), input_.channels, places * out_, seen,
                            weights.backward.data(), input_.channels, change_x, input_.channels, start);
}

}  // namespace rumor::models
