// Large pages for memory that is reached all over: weights and their float view.
//
// A sparse update touches less than one place in each 4 KB page of a large model, so that every entry waits
// for an address to be looked up as well as for the memory. With pages of 2 MB it does not (ARCHITECTURE.md
// has the figures). It is a wish: where the system has none, or is told never to give them, nothing changes.
//
// Thread: plain functions.
#pragma once

#include <cstddef>
#include <vector>

namespace rumor {

// Wishes for large pages in this range. Best before it is written for the first time; else the system may
// move what is there when it has time.
void wish_large_pages(void* data, std::size_t bytes);

// The vector with `count` times `value`, in large pages where it gets new memory for that.
template <typename T>
void assign_in_large_pages(std::vector<T>& vector, std::size_t count, T value) {
  vector.clear();
  vector.reserve(count);
  wish_large_pages(vector.data(), count * sizeof(T));
  vector.assign(count, value);
}

// Scratch memory in large pages: at least `count` values. When it grows, what it held is lost; it never
// shrinks.
template <typename T>
T* room_in_large_pages(std::vector<T>& memory, std::size_t count) {
  if (memory.size() < count) assign_in_large_pages(memory, count, T{});
  return memory.data();
}

}  // namespace rumor
