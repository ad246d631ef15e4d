#include "models/kernels/activations.h"

namespace rumor::models {

void place_activations(LargeVector<float>& memory, std::span<const ActivationArray> arrays) {
  constexpr std::size_t line = cache_line / sizeof(float);
  const auto room = [](std::size_t floats) { return (floats + line - 1) / line * line + lines_apart * line; };
  std::size_t all = 0;
  for (const ActivationArray& array : arrays) all += room(array.floats);
  float* at = room_in(memory, all);
  for (const ActivationArray& array : arrays) {
    *array.at = at;
    at += room(array.floats);
  }
}

}  // namespace rumor::models
