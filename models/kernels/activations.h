// Memory of the activations of a model: one piece for all, so that it is large enough for large pages. A row of a
// product is a kilobyte or more from the next, so with pages of 4 KB each row waits for its address (models/README.md).
//
// Thread: plain functions.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/base/large_vector.h"

namespace rumor::models {

struct ActivationArray {
  float** at;  // of the model; set by place_activations()
  std::size_t floats;
};

// Gives each array its own part of `memory`, which grows if needed and then loses its content. An array begins at a
// cache line, and a few lines later in its page than the previous array (runtime/base/large_vector.h).
void place_activations(LargeVector<float>& memory, std::span<const ActivationArray> arrays);

}  // namespace rumor::models
