// OutsideTensors: the memory of another program's weights, read and written as floats.
//
// Thread: a caller of its own for each piece. Memory: the program's.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "runtime/base/large_vector.h"
#include "runtime/base/parallel.h"
#include "runtime/base/param_layout.h"

namespace rumor {

// The memory of one tensor of the layout: contiguous, row-major.
struct OutsideTensor {
  enum class Type : std::uint8_t { f32, bf16 };
  Type type = Type::f32;
  void* data = nullptr;
};

// The values on the grid, each rounded to the nearest point. Errors: Errc::limit naming the tensor: a value that is not
// finite, or beyond range_guarded.
Result<LargeVector<std::int32_t>> on_grid(const ParamLayout& layout, std::span<const OutsideTensor> tensors,
                                          int grid_bits);
// The largest magnitude; values that are not numbers do not count.
double largest_of(const ParamLayout& layout, std::span<const OutsideTensor> tensors);

// The forms of a value.
struct Float {
  using Word = float;
  static float read(Word word) { return word; }
  static Word word(float value) { return value; }
};

struct Bfloat {
  using Word = std::uint16_t;  // the upper half of a float
  static float read(Word word) { return std::bit_cast<float>(std::uint32_t{word} << 16); }
  // To nearest, ties to even, as PyTorch. A value that is not finite stays so.
  static Word word(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7fff'ffff) > 0x7f80'0000) return static_cast<Word>(bits >> 16 | 0x40);
    return static_cast<Word>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
};

// call(Form, words of the tensor)
template <class Call>
auto with_words(const OutsideTensor& tensor, Call&& call) {
  if (tensor.type == OutsideTensor::Type::bf16) return call(Bfloat{}, static_cast<Bfloat::Word*>(tensor.data));
  return call(Float{}, static_cast<Float::Word*>(tensor.data));
}

// Parameters of a piece.
inline constexpr std::uint32_t stretch_params = 1 << 16;

// Pieces of tensors, so that threads have work of the same size: piece(t, begin, end), positions within the tensor.
template <class Piece>
void each_piece(const ParamLayout& layout, Parallel& parallel, Piece&& piece) {
  std::vector<std::pair<std::size_t, std::uint32_t>> pieces;
  for (std::size_t t = 0; t < layout.tensors().size(); ++t)
    for (std::uint64_t begin = 0; begin < layout.tensors()[t].size; begin += stretch_params)
      pieces.emplace_back(t, static_cast<std::uint32_t>(begin));
  parallel.each(pieces.size(), [&](std::size_t p) {
    const auto [t, begin] = pieces[p];
    piece(t, begin, std::min(layout.tensors()[t].size - begin, stretch_params) + begin);
  });
}

}  // namespace rumor
