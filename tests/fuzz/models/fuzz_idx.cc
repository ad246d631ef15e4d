// parse_idx on any bytes: it must refuse or give an array that lies inside them and fills them.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "models/data/idx.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(idx) {
  const rumor::Result<rumor::models::IdxArray> array = rumor::models::parse_idx({data, size}, "input");
  if (!array) {
    if (array.error().text.empty()) std::abort();
    return 0;
  }
  std::uint64_t elements = 1;
  for (const std::uint32_t extent : array->shape) elements *= extent;
  if (elements != array->elements.size()) std::abort();
  if (array->elements.data() + elements != data + size) std::abort();
  std::uint64_t sum = 0;
  for (const std::uint8_t element : array->elements) sum += element;
  return sum > elements * 255 ? 1 : 0;
}
