// Sizes and parameters for the tests of models and their kernels on a device.
#pragma once

#include <span>

#include "gpu/device/device.h"
#include "models/families/model.h"
#include "models/kernels/kernels.h"
#include "models/kernels/sequence_kernels.h"
#include "tests/gpu/kernels/numbers.h"
#include "tests/gpu/target.h"

namespace rumor::gpu {

inline const models::SequenceKernels& cpu() {
  return *models::kernels().sequence;
}

struct Size {
  std::uint32_t rows, columns;
  std::size_t count() const { return std::size_t{rows} * columns; }
  Matrix matrix() const { return {rows, columns}; }
};

// work(target, size, prng, skip) for each size, each with another order and alignment.
template <class Work>
void each_size(std::uint64_t seed, std::span<const Size> sizes, const Work& work) {
  Prng prng(seed);
  std::uint64_t order = 0;
  for (const Size& size : sizes) {
    const Target target(order++ % 5);
    work(target, size, prng, prng.below(4));
  }
}

inline DeviceArray<float> copied(const Target& target, const Floats& values) {
  auto array = DeviceArray<float>::create(*target.gpu, values.size(), "a test").value();
  array.write(values.data(), values.size());
  return array;
}

// As a run begins.
inline Floats start(const models::Model& model) {
  return models::to_floats(models::initial_weights(model, 5, 24), 24);
}

// Larger than a run begins with, so that no part of the gradient hides behind another.
inline Floats stirred(Prng& prng, const models::Model& model, float grain = 1e-3f) {
  Floats params = start(model);
  for (float& value : params) value += static_cast<float>(prng.between(-100, 100)) * grain;
  return params;
}

// The values of one tensor.
inline Floats part_of(const Floats& all, const TensorInfo& tensor) {
  return Floats(all.begin() + tensor.offset, all.begin() + tensor.offset + tensor.size);
}

}  // namespace rumor::gpu
