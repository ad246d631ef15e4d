// Where the activations of a model lie: all in one piece of memory, so that it is large enough for large pages. A row
// of a product is a kilobyte or more from the next, and in pages of 4 KB each waits for its address (models/README.md).
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

// Gives each array its own part of `memory`, which grows if it must and then loses what it held. An array begins with
// a line of the cache, and a few lines later in its page than the one before (runtime/base/large_vector.h).
void place_activations(LargeVector<float>& memory, std::span<const ActivationArray> arrays);

}  // namespace rumor::models
