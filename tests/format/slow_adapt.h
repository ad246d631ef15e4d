// A second decoder of segments in mode ADAPT and LINK, written from compress/ADAPT.md alone: every interval
// is found by looking at all cells, and nothing of compress/ is in it. Where it and the program differ, one
// of them does not follow the text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace rumor::slow {

struct AdaptPart {
  std::size_t tensor = 0;
  std::uint64_t columns = 1, begin = 0, end = 0, count = 0;
};

struct AdaptEntry {
  std::uint64_t position = 0;
  bool minus = false;
  bool operator==(const AdaptEntry&) const = default;
};

struct AdaptTensor {
  std::uint64_t rows = 1, columns = 1;
};

// Chapter 9: the history that one end of a connection remembers.
class AdaptHistory {
 public:
  explicit AdaptHistory(const std::vector<AdaptTensor>& tensors);
  // `entries`: those of each tensor.
  void remember(const std::vector<std::vector<AdaptEntry>>& entries);

  struct Side {
    std::vector<std::uint64_t> x, leaning;
    std::array<std::int64_t, 6> merit{};
    void learn(const std::vector<std::uint64_t>& fresh);
    std::vector<std::uint64_t> priors(std::uint64_t first, std::uint64_t count) const;
    std::vector<std::uint64_t> leanings(std::uint64_t first, std::uint64_t count) const;
  };
  struct Tensor {
    std::uint64_t size = 0, given_columns = 1, columns = 1;
    Side rows, by_column;
  };
  std::vector<Tensor> tensors;
};

// Nothing where the body must be rejected. history: null for ADAPT.
std::optional<std::vector<AdaptEntry>> decode_adapt(const std::vector<AdaptPart>& parts,
                                                    const std::vector<std::uint8_t>& body,
                                                    const AdaptHistory* history);

}  // namespace rumor::slow
