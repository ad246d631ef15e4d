#include "models/layers/pool.h"

#include "models/kernels/kernels.h"
#include "runtime/base/check.h"

namespace rumor::models {

PictureShape max_pooled(PictureShape input) {
  RUMOR_CHECK(input.height >= 2);
  RUMOR_CHECK(input.width >= 2);
  return {input.height / 2, input.width / 2, input.channels};
}

void max_pool(PictureShape input, const float* x, float* y) {
  kernels().max_pool(input.height, input.width, input.channels, x, y);
}

void max_pool_backward(PictureShape input, const float* x, const float* change_y, float* change_x) {
  kernels().max_pool_backward(input.height, input.width, input.channels, x, change_y, change_x);
}

void average_pool(PictureShape input, const float* x, float* y) {
  const float share = 1 / static_cast<float>(input.pixels());
  kernels().matmul(1, input.channels, static_cast<long>(input.pixels()), {&share, 0, 0}, x, input.channels, y,
                   input.channels, Start::zero);
}

void average_pool_backward(PictureShape input, const float* change_y, float* change_x) {
  const float share = 1 / static_cast<float>(input.pixels());
  for (std::size_t p = 0; p < input.pixels(); ++p) {
    for (std::uint32_t c = 0; c < input.channels; ++c) *change_x++ = change_y[c] * share;
  }
}

}  // namespace rumor::models
