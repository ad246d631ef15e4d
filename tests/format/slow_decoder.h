// A second decoder of update payloads, written from compress/FORMAT.md alone: one bit at a time, chapter by
// chapter, and nothing of compress/ in it. Where it and the program differ, one of them does not follow the
// text.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace rumor::slow {

struct Entry {
  std::size_t tensor = 0;
  std::uint64_t position = 0;  // inside the tensor
  bool minus = false;
  bool operator==(const Entry&) const = default;
};

struct Update {
  std::uint64_t step = 0;
  std::vector<Entry> entries;
};

// Nothing where the payload must be rejected. Small payloads only: it makes room without asking first.
std::optional<Update> decode(const std::vector<std::uint64_t>& sizes,
                             const std::vector<std::uint8_t>& payload);

}  // namespace rumor::slow
