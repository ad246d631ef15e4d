#include "runtime/training/outside/outside_tensors.h"

#include <cmath>

#include "runtime/base/grid_range.h"
#include "runtime/base/text.h"

namespace rumor {

Result<LargeVector<std::int32_t>> on_grid(const ParamLayout& layout, std::span<const OutsideTensor> tensors,
                                          int grid_bits) {
  LargeVector<std::int32_t> weights(layout.params());
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const TensorInfo& info = layout.tensors()[t];
    const bool fits = with_words(tensors[t], [&](auto form, auto* words) {
      for (std::uint32_t i = 0; i < info.size; ++i) {
        const double units = std::round(std::ldexp(double{form.read(words[i])}, grid_bits));
        if (!(std::abs(units) <= range_guarded)) return false;
        weights[info.offset + i] = static_cast<std::int32_t>(units);
      }
      return true;
    });
    if (!fits)
      return Error{Errc::limit,
                   str("tensor ", info.name, " holds a value that is not a finite number below ",
                       fixed(std::ldexp(range_guarded, -grid_bits), 0), ", three quarters of where the ",
                       "weights' grid ends; scale the model down, or choose a smaller compress.grid_bits for the ",
                       "whole run")};
  }
  return weights;
}

double largest_of(const ParamLayout& layout, std::span<const OutsideTensor> tensors) {
  double largest = 0;
  for (std::size_t t = 0; t < tensors.size(); ++t)
    with_words(tensors[t], [&](auto form, auto* words) {
      for (std::uint32_t i = 0; i < layout.tensors()[t].size; ++i)
        largest = std::max(largest, std::abs(double{form.read(words[i])}));
    });
  return largest;
}

}  // namespace rumor
