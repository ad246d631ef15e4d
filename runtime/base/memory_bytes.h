// Bytes that containers hold: their allocated capacity, not the part in use.
//
// Thread: plain functions.
#pragma once

#include <cstddef>

namespace rumor {

// Bytes of vectors, with any allocator.
template <class... Vector>
std::size_t capacity_bytes(const Vector&... vectors) {
  return (std::size_t{0} + ... + (vectors.capacity() * sizeof(typename Vector::value_type)));
}

}  // namespace rumor
