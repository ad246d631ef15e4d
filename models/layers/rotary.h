// Rotary: positions as rotations (Su et al. 2021, "RoFormer"), in the arrangement of Hugging Face's Llama: value i of a
// head is paired with value i + head_size / 2. The pair turns by place * base^(-2 i / head_size).
//
// Longer contexts than a model began with are reached by slower rotations, as RotaryScaling says.
//
// Bits: frequencies and angles are rounded to float, as they are there; cosine and sine of that float are computed in
// double by models/kernels/portable_math.h. Thread: immutable once made.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/memory_bytes.h"
#include "runtime/base/parallel.h"

namespace rumor::models {

// How frequencies are slowed down.
struct RotaryScaling {
  enum class Kind : std::uint8_t {
    none,
    linear,  // all of them by `factor` (Chen et al. 2023)
    llama3,  // by wavelength: those above original_context / low are slowed by `factor`, those below
             // original_context / high are kept, those between are blended (Llama 3.1)
  };
  Kind kind = Kind::none;
  double factor = 1, low = 1, high = 4;
  std::uint32_t original_context = 8192;

  bool operator==(const RotaryScaling&) const = default;
};

class Rotary {
 public:
  // Requires: context >= 1, head_size even and above 0, base > 0, factor > 0, high > low > 0.
  Rotary(long context, long head_size, double base, const RotaryScaling& scaling);

  // Turns the first `heads` heads of each row by its place in its context. x: [rows][row]; row r has place
  // r % context. `first_place` is added to the place. backward: turns back, which is the gradient's rotation.
  void forward(Parallel* parallel, long rows, long heads, float* x, long row, long first_place = 0) const {
    turn(parallel, rows, heads, x, row, first_place, 1);
  }
  void backward(Parallel* parallel, long rows, long heads, float* x, long row) const {
    turn(parallel, rows, heads, x, row, 0, -1);
  }

  // [context][head_size / 2], of each place and pair.
  const std::vector<float>& cosine() const { return cosine_; }
  const std::vector<float>& sine() const { return sine_; }

  std::size_t memory_bytes() const { return capacity_bytes(cosine_, sine_); }

 private:
  void turn(Parallel* parallel, long rows, long heads, float* x, long row, long first_place, float direction) const;

  long context_, half_;
  std::vector<float> cosine_, sine_;  // [context][half]
};

}  // namespace rumor::models
