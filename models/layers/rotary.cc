#include "models/layers/rotary.h"

#include "models/kernels/kernels.h"
#include "models/kernels/portable_math.h"
#include "models/kernels/sequence_kernels.h"
#include "models/kernels/tasks.h"
#include "runtime/base/check.h"

namespace rumor::models {
namespace {

constexpr double full_turn = 6.283185307179586;

// In: turns a token, in radians.
float scaled_frequency(float frequency, const RotaryScaling& scaling) {
  if (scaling.kind == RotaryScaling::Kind::none) return frequency;
  const double here = static_cast<double>(frequency), slow = here / scaling.factor;
  if (scaling.kind == RotaryScaling::Kind::linear) return static_cast<float>(slow);
  const auto original = static_cast<double>(scaling.original_context);
  const double length = full_turn / here;  // of a turn, in tokens
  if (length > original / scaling.low) return static_cast<float>(slow);
  if (length < original / scaling.high) return frequency;
  const double share = (original / length - scaling.low) / (scaling.high - scaling.low);
  return static_cast<float>((1 - share) * slow + share * here);
}

}  // namespace

Rotary::Rotary(long context, long head_size, double base, const RotaryScaling& scaling)
    : context_(context), half_(head_size / 2) {
  RUMOR_CHECK(context >= 1 && half_ >= 1 && head_size % 2 == 0);
  RUMOR_CHECK(base > 0 && scaling.factor > 0);
  std::vector<float> frequency;
  for (long i = 0; i < half_; ++i) {
    const double exponent = static_cast<double>(2 * i) / static_cast<double>(head_size);
    const auto plain = static_cast<float>(portable_exp(-exponent * portable_log(base)));
    frequency.push_back(scaled_frequency(plain, scaling));
  }
  for (long place = 0; place < context; ++place) {
    for (const float turns : frequency) {
      const float angle = static_cast<float>(place) * turns;
      cosine_.push_back(static_cast<float>(portable_cos(static_cast<double>(angle))));
      sine_.push_back(static_cast<float>(portable_sin(static_cast<double>(angle))));
    }
  }
}

void Rotary::turn(Parallel* parallel, long rows, long heads, float* x, long row, long first_place,
                  float direction) const {
  const SequenceKernels& k = *kernels().sequence;
  each_range(parallel, rows, 16, [&](Range part) {
    for (long r = part.begin; r < part.end; ++r) {
      const long at = (r + first_place) % context_ * half_;
      k.rotate(heads, half_, cosine_.data() + at, sine_.data() + at, direction, x + r * row);
    }
  });
}

}  // namespace rumor::models
