#include "models/tokenizer/pair_merger.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace rumor::models {
namespace {

constexpr std::uint32_t nowhere = UINT32_MAX;

std::uint64_t pair_key(std::uint32_t left, std::uint32_t right) { return std::uint64_t{left} << 32 | right; }

}  // namespace

PairMerger::PairMerger(const std::array<std::uint32_t, 256>& bytes, const std::vector<TokenMerge>& merges)
    : bytes_(bytes) {
  outcome_of_.reserve(merges.size());
  for (std::uint32_t rank = 0; rank < merges.size(); ++rank)
    outcome_of_[pair_key(merges[rank].left, merges[rank].right)] = {rank, merges[rank].merged};
}

const PairMerger::Outcome* PairMerger::find(std::uint32_t left, std::uint32_t right) const {
  const auto at = outcome_of_.find(pair_key(left, right));
  return at == outcome_of_.end() ? nullptr : &at->second;
}

// Notes the merge of the symbol at `at` with the one after it, if there is one.
void PairMerger::look(Memory& memory, std::uint32_t at) const {
  if (at == nowhere || memory.symbols[at].after == nowhere) return;
  const std::uint32_t left = memory.symbols[at].token, right = memory.symbols[memory.symbols[at].after].token;
  const Outcome* outcome = find(left, right);
  if (outcome == nullptr) return;
  memory.heap.push_back({outcome->rank, at, left, right});
  std::push_heap(memory.heap.begin(), memory.heap.end());
}

void PairMerger::merge(std::string_view piece, Memory& memory, std::vector<std::uint32_t>& tokens) const {
  RUMOR_CHECK(piece.size() < nowhere);
  if (piece.empty()) return;
  const auto count = static_cast<std::uint32_t>(piece.size());
  memory.symbols.clear();
  memory.heap.clear();
  for (std::uint32_t i = 0; i < count; ++i)
    memory.symbols.push_back({bytes_[static_cast<unsigned char>(piece[i])], i - 1, i + 1 == count ? nowhere : i + 1});
  for (std::uint32_t i = 0; i < count; ++i) look(memory, i);
  while (!memory.heap.empty()) {
    std::pop_heap(memory.heap.begin(), memory.heap.end());
    const Memory::Candidate next = memory.heap.back();
    memory.heap.pop_back();
    Memory::Symbol& left = memory.symbols[next.at];
    if (left.token != next.left || left.after == nowhere) continue;
    Memory::Symbol& right = memory.symbols[left.after];
    if (right.token != next.right) continue;
    left.token = find(next.left, next.right)->merged;
    right.token = nowhere;  // gone
    left.after = right.after;
    if (left.after != nowhere) memory.symbols[left.after].before = next.at;
    look(memory, left.before);
    look(memory, next.at);
  }
  for (std::uint32_t at = 0; at != nowhere; at = memory.symbols[at].after) tokens.push_back(memory.symbols[at].token);
}

}  // namespace rumor::models
