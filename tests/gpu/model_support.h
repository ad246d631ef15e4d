// Parameters for the tests of models on a device.
#pragma once

#include "gpu/device.h"
#include "models/model.h"
#include "tests/gpu/numbers.h"
#include "tests/gpu/target.h"

namespace rumor::gpu {

inline DeviceArray<float> copied(const Target& target, const Floats& values) {
  auto array = DeviceArray<float>::create(*target.gpu, values.size(), "a test").value();
  array.write(values.data(), values.size());
  return array;
}

// As a run begins.
inline Floats start(const models::Model& model) {
  return models::to_floats(models::initial_weights(model, 5, 24), 24);
}

}  // namespace rumor::gpu
