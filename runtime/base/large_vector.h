// LargeVector: a vector for weights, activations and other data that is read and written in long runs.
//
// Its memory begins at a cache line, so that no vector register of a kernel is loaded from two lines. It requests large
// pages: a sparse update touches less than one place in each 4 KB page of a large model, so with small pages every
// entry waits for an address translation as well as for the memory (compress/README.md has the figures). If the system
// has no large pages, or never gives them, nothing changes.
//
// Neighbouring allocations begin at different offsets in their pages. A processor treats a load as dependent on an
// earlier store if the last twelve bits of their addresses agree. Arrays of one size that all begin a page would meet
// this case all the time.
//
// Thread: as std::vector.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace rumor {

// The memory begins at a cache line, and neighbours are this many more lines apart.
inline constexpr std::size_t cache_line = 64, lines_apart = 5;

// Memory of LargeVector: at least `bytes`, to be given back with free_large(). Throws std::bad_alloc.
void* allocate_large(std::size_t bytes);
void free_large(void* data) noexcept;

template <typename T>
struct LargeAllocator {
  using value_type = T;

  LargeAllocator() = default;
  template <typename U>
  LargeAllocator(const LargeAllocator<U>&) {}

  T* allocate(std::size_t count) {
    if (count > static_cast<std::size_t>(-1) / 2 / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(allocate_large(count * sizeof(T)));
  }
  void deallocate(T* data, std::size_t) noexcept { free_large(data); }

  friend bool operator==(LargeAllocator, LargeAllocator) { return true; }
};

template <typename T>
using LargeVector = std::vector<T, LargeAllocator<T>>;

// Scratch memory: at least `count` values. It loses its content when it grows, and it never shrinks.
template <typename T>
T* room_in(LargeVector<T>& memory, std::size_t count) {
  if (memory.size() < count) memory.assign(count, T{});
  return memory.data();
}

}  // namespace rumor
