#include "runtime/base/large_vector.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace rumor {
namespace {

constexpr std::size_t page = 4096;
constexpr std::align_val_t alignment{cache_line};

// The prefix of the memory: `offset` bytes, a whole number of cache lines. Its end holds the start of the allocation.
std::size_t next_offset(std::size_t bytes) {
  if (bytes < page) return cache_line;
  static std::atomic<unsigned> count{0};  // results do not depend on addresses
  return cache_line + cache_line * lines_apart * count.fetch_add(1, std::memory_order_relaxed) % page;
}

void wish_large_pages([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) {
#ifdef MADV_HUGEPAGE
  constexpr std::uintptr_t large_page = std::uintptr_t{2} << 20;
  const auto begin = (reinterpret_cast<std::uintptr_t>(data) + large_page - 1) / large_page * large_page;
  const auto end = (reinterpret_cast<std::uintptr_t>(data) + bytes) / large_page * large_page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

}  // namespace

void* allocate_large(std::size_t bytes) {
  const std::size_t offset = next_offset(bytes);
  auto* const begin = static_cast<char*>(::operator new(offset + bytes, alignment));
  char* const data = begin + offset;
  std::memcpy(data - sizeof begin, &begin, sizeof begin);
  wish_large_pages(data, bytes);
  return data;
}

void free_large(void* data) noexcept {
  char* begin;
  std::memcpy(&begin, static_cast<char*>(data) - sizeof begin, sizeof begin);
  ::operator delete(begin, alignment);
}

}  // namespace rumor
