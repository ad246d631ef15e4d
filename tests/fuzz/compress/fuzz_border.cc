// Border numbers: whatever decode_border() accepts is finite, and comes back from its own bytes where numbers
// are exact.
//
// The first byte of the input chooses the numbers and the floats of a row; the rest is the border.
#include <cmath>

#include "compress/border/border_codec.h"
#include "runtime/base/check.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(border) {
  using namespace rumor::compress;
  if (size == 0) return 0;
  const auto numbers = static_cast<BorderNumbers>(1 + data[0] % 3);
  const std::size_t floats = 1 + data[0] / 3 * 8;
  const std::size_t rows = (size - 1) / border_bytes(numbers, 1, floats);
  std::vector<float> values(rows * floats);
  const rumor::BytesView border(data + 1, size - 1);
  const auto decoded = decode_border(numbers, floats, border, values);
  if (!decoded.ok()) {
    RUMOR_CHECK(!decoded.error().text.empty());
    return 0;
  }
  for (const float value : values) RUMOR_CHECK(std::isfinite(value));
  rumor::Bytes again;
  encode_border(numbers, floats, values, again);
  RUMOR_CHECK(again.size() == border.size());
  if (numbers != BorderNumbers::int8) RUMOR_CHECK(std::equal(again.begin(), again.end(), border.begin()));
  return 0;
}
