// How many bytes containers hold: what they have asked the system for, not what is in use.
//
// Thread: plain functions.
#pragma once

#include <cstddef>
#include <vector>

namespace rumor {

template <class... T>
std::size_t capacity_bytes(const std::vector<T>&... vectors) {
  return (std::size_t{0} + ... + (vectors.capacity() * sizeof(T)));
}

}  // namespace rumor
