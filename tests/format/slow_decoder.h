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
  std::uint64_t step = 0;
  bool operator==(const Entry&) const = default;
};

struct Update {
  std::vector<Entry> entries;
};

// Nothing where the payload must be rejected. Small payloads only: it makes room without asking first.
std::optional<Update> decode(const std::vector<std::uint64_t>& sizes,
                             const std::vector<std::uint8_t>& payload);

// A message of chapter 6: a payload, or segments in modes of their own. `foreign` says that one of them is in
// a mode whose body these pages do not describe (ADAPT, LINK); then nothing is returned.
std::optional<Update> decode_message(const std::vector<std::uint64_t>& sizes,
                                     const std::vector<std::uint8_t>& message, bool& foreign);

// ---- to damage payloads on purpose ----

// Bytes before the checksum of the table. Requires: a sound payload of more than one segment.
std::size_t head_bytes(const std::vector<std::uint64_t>& sizes, const std::vector<std::uint8_t>& payload);
// Puts the checksum of the first `head_bytes` bytes behind them.
void put_head_checksum(std::vector<std::uint8_t>& payload, std::size_t head_bytes);

}  // namespace rumor::slow
