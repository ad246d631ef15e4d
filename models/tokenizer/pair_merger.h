// PairMerger: byte-pair encoding (Sennrich et al. 2016) of one piece of a text. The neighbours with the merge of the
// lowest rank are merged, the leftmost first, until no neighbours have a merge.
//
// A list of neighbours and a heap of their merges make this n log n for a piece of n bytes, so a long piece, such as a
// megabyte of one letter, takes no quadratic time.
//
// Thread: immutable once filled; the memory of a call belongs to its caller.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rumor::models {

// Two tokens become one.
struct TokenMerge {
  std::uint32_t left = 0, right = 0, merged = 0;
};

class PairMerger {
 public:
  // Memory of a call, kept from one to the next.
  struct Memory {
    struct Symbol {
      std::uint32_t token;
      std::uint32_t before, after;  // neighbours
    };
    struct Candidate {
      std::uint32_t rank, at;         // of the merge; the left symbol
      std::uint32_t left, right;      // tokens that were there when it was found
      bool operator<(const Candidate& other) const {  // for a heap with the next merge on top
        return rank != other.rank ? rank > other.rank : at > other.at;
      }
    };
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
  };

  PairMerger() = default;
  // bytes: the token of each byte. merges: in the order of their ranks; of two for one pair the later counts.
  PairMerger(const std::array<std::uint32_t, 256>& bytes, const std::vector<TokenMerge>& merges);

  // Appends the tokens of `piece`. Requires: fewer than 2^32 - 1 bytes.
  void merge(std::string_view piece, Memory& memory, std::vector<std::uint32_t>& tokens) const;

 private:
  struct Outcome {
    std::uint32_t rank, merged;
  };
  void look(Memory& memory, std::uint32_t at) const;
  const Outcome* find(std::uint32_t left, std::uint32_t right) const;

  std::array<std::uint32_t, 256> bytes_{};
  std::unordered_map<std::uint64_t, Outcome> outcome_of_;  // by left << 32 | right
};

}  // namespace rumor::models
