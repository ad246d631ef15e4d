#include "models/activations.h"

namespace rumor::models {

void place_activations(LargeVector<float>& memory, std::span<const ActivationArray> arrays) {
  constexpr std::size_t line = 16, lines_between = 5;  // a line of floats
  const auto room = [](const ActivationArray& array) { return (array.floats + line - 1) / line * line; };
  std::size_t all = 0;
  for (const ActivationArray& array : arrays) all += room(array) + lines_between * line;
  float* at = room_in(memory, all);
  for (const ActivationArray& array : arrays) {
    *array.at = at;
    at += room(array) + lines_between * line;
  }
}

}  // namespace rumor::models
