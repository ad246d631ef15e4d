// Convolution: 3 x 3, stride 1, zeros around the picture, so that the picture keeps its size.
//
//   y[p][o] = bias[o] + sum over t, c of x[p + t][c] * weight[o][c][t],   t: the nine places of the window
//
// Forward and backward are matrix products; one side is the picture under the window (KernelTable::matmul_gathered). So
// there is no copy of the picture per window place, only one with a border of zeros.
// Sums run over t, then the channel, ascending; those of the weights over the pixels. Equal bits everywhere.
//
// Weights have the layout of PyTorch's nn.Conv2d(in, out, 3, padding=1): weight [out][in][3][3], bias [out]. Cost: 18 *
// pixels * in * out operations forward, and as many for each of the two gradients.
//
// Thread: const calls from any number of threads, each with its own scratch memory.
#pragma once

#include <vector>

#include "models/kernels/kernel_table.h"
#include "models/layers/picture.h"
#include "runtime/base/large_vector.h"

namespace rumor::models {

// The weights in the order of the products, made once a step.
struct ConvolutionWeights {
  LargeVector<float> forward;   // [9][in][out]
  LargeVector<float> backward;  // [9][out][in], the window turned round
};

class Convolution {
 public:
  static constexpr std::uint32_t places = 9;

  Convolution(PictureShape input, std::uint32_t out);

  PictureShape input() const { return input_; }
  PictureShape output() const { return {input_.height, input_.width, out_}; }
  std::size_t weights() const { return std::size_t{places} * input_.channels * out_; }

  void order(const float* weight, ConvolutionWeights& ordered) const;

  // One picture: x [height][width][in] -> y [height][width][out]. bias: [out], or null.
  void forward(const ConvolutionWeights& weights, const float* bias, const float* x, float* y,
               LargeVector<float>& scratch) const;

  // gradient_by_place [9][in][out] += ..., bias_gradient [out] += ... (null: no bias), from one picture.
  void weight_gradient(const float* x, const float* change_y, float* gradient_by_place, float* bias_gradient,
                       LargeVector<float>& scratch) const;
  // change_x [height][width][in] = or += ..., from change_y = d loss / d y.
  void input_gradient(const ConvolutionWeights& weights, const float* change_y, float* change_x, Start start,
                      LargeVector<float>& scratch) const;

  // [9][in][out] -> PyTorch's [out][in][3][3].
  void restore(const float* by_place, float* weight) const;

 private:
  // Offsets in a bordered picture: of each pixel's window, and of each value in a window.
  struct Window {
    std::vector<int> pixel_at;  // [pixels]
    std::vector<int> value_at;  // [9 * channels]
  };
  Window window_of(std::uint32_t channels) const;
  // The picture with its border, in scratch.
  const float* border(const float* picture, std::uint32_t channels, LargeVector<float>& scratch) const;

  PictureShape input_;
  std::uint32_t out_;
  Window on_input_, on_output_;
};

}  // namespace rumor::models
