#include "models/data/token_array.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "runtime/base/check.h"

namespace rumor::models {

static_assert(std::endian::native == std::endian::little, "words are copied as they lie in the file");

namespace {

void widen(const std::uint8_t* from, std::size_t count, TokenArray::Width width, Token* to) {
  switch (width) {
    case TokenArray::Width::byte:
      std::copy_n(from, count, to);
      return;
    case TokenArray::Width::word:
      for (std::size_t i = 0; i < count; ++i) {
        std::uint16_t word;  // it may lie at any address
        std::memcpy(&word, from + i * sizeof word, sizeof word);
        to[i] = word;
      }
      return;
    case TokenArray::Width::wide:
      std::memcpy(to, from, count * sizeof *to);
      return;
  }
}

}  // namespace

void TokenArray::append(std::shared_ptr<const void> owner, BytesView bytes, Width width) {
  const auto wide = static_cast<std::size_t>(width);
  RUMOR_CHECK(bytes.size() % wide == 0);
  if (bytes.empty()) return;
  ends_.push_back(size() + bytes.size() / wide);
  parts_.push_back({std::move(owner), bytes, width});
}

void TokenArray::copy(std::uint64_t first, std::span<Token> out) const {
  RUMOR_CHECK(first <= size() && out.size() <= size() - first);
  auto part = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), first) - ends_.begin());
  for (Token* to = out.data(); to != out.data() + out.size(); ++part) {
    const std::uint64_t begin = part == 0 ? 0 : ends_[part - 1];
    const auto left = static_cast<std::uint64_t>(out.data() + out.size() - to);
    const auto count = static_cast<std::size_t>(std::min(ends_[part] - first, left));
    const std::uint8_t* from =
        parts_[part].bytes.data() + (first - begin) * static_cast<std::size_t>(parts_[part].width);
    widen(from, count, parts_[part].width, to);
    to += count;
    first += count;
  }
}

TokenArray TokenArray::slice(std::uint64_t first, std::uint64_t count) const {
  RUMOR_CHECK(first <= size() && count <= size() - first);
  TokenArray slice;
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    const auto wide = static_cast<std::size_t>(parts_[part].width);
    const std::uint64_t begin = part == 0 ? 0 : ends_[part - 1];
    const std::uint64_t from = std::max(first, begin), to = std::min(first + count, ends_[part]);
    if (from >= to) continue;
    slice.append(parts_[part].owner, parts_[part].bytes.subspan((from - begin) * wide, (to - from) * wide),
                 parts_[part].width);
  }
  return slice;
}

}  // namespace rumor::models
