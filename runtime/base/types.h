// Ids that do not mix: each is a value type of its own, comparable and printable as hex.
//
// Thread: plain values. Memory: inline arrays, no allocation.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace rumor {

using Bytes = std::vector<std::uint8_t>;
using BytesView = std::span<const std::uint8_t>;

// Lower-case hex of any bytes.
std::string to_hex(BytesView bytes);

// A fixed-size identifier; Tag keeps the kinds apart at compile time.
template <class Tag, std::size_t N>
struct Id {
  static constexpr std::size_t size = N;
  std::array<std::uint8_t, N> bytes{};

  bool operator==(const Id&) const = default;
  // As of the bytes, eight at a time: maps of streams are looked into for every frame.
  std::strong_ordering operator<=>(const Id& other) const {
    static_assert(N % 8 == 0);
    for (std::size_t i = 0; i < N; i += 8)
      if (const auto order = word(i) <=> other.word(i); order != 0) return order;
    return std::strong_ordering::equal;
  }
  BytesView view() const { return {bytes.data(), N}; }
  std::string hex() const { return to_hex(view()); }
  // First 8 hex digits: for log lines, never for comparison.
  std::string brief() const { return hex().substr(0, 8); }
  bool is_zero() const { return *this == Id{}; }

  // Copies exactly N bytes. Requires: source.size() == N (callers check data from peers).
  static Id from(BytesView source) {
    Id id;
    for (std::size_t i = 0; i < N; ++i) id.bytes[i] = source[i];
    return id;
  }

 private:
  // Eight bytes, the first of them the most significant.
  std::uint64_t word(std::size_t i) const {
    std::uint64_t all = 0;
    for (std::size_t b = 0; b < 8; ++b) all = all << 8 | bytes[i + b];
    return all;
  }
};

using NodeId = Id<struct NodeTag, 32>;      // the peer's Ed25519 public key
using StreamId = Id<struct StreamTag, 16>;  // new at every process start: gossip/trust/signing.h
using RunId = Id<struct RunTag, 16>;        // names a run: see runtime/run/run_config.h
using Hash256 = Id<struct HashTag, 32>;     // SHA-256
using Signature = Id<struct SignatureTag, 64>;  // Ed25519, by a NodeId's private half

// Names one update for ever. seq counts from 1 within its stream.
struct UpdateKey {
  StreamId stream;
  std::uint64_t seq = 0;
  auto operator<=>(const UpdateKey&) const = default;
};

// The buffers of one node, as it has said them (gossip/PROTOCOL.md 6.15), and those of all.
struct BuffersOfNode {
  std::uint64_t progress = 0;  // samples that the run had made, as far as the node knew
  Bytes values;                // mean nothing to the protocol: runtime/training/outside/buffer_means.h
};
using NodeBuffers = std::map<NodeId, BuffersOfNode>;

}  // namespace rumor
