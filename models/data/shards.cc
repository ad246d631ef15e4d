// Which rows a peer has.
#include <algorithm>
#include <numeric>

#include "models/data/dataset.h"
#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::models {
namespace {

// Where part i of `parts` nearly equal ones begins among `rows`.
std::ptrdiff_t edge(std::uint64_t rows, std::uint64_t i, std::uint64_t parts) {
  return static_cast<std::ptrdiff_t>(rows * i / parts);
}

// The numbers of the shard's pieces of the set, `pieces` for each peer.
std::vector<std::uint32_t> drawn_pieces(const Shard& shard, std::uint32_t pieces, Prng& prng) {
  std::vector<std::uint32_t> all(std::size_t{shard.count} * pieces);
  std::iota(all.begin(), all.end(), 0u);
  prng.shuffle(std::span(all));
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(std::uint64_t{shard.index} * pieces);
  return {first, first + pieces};
}

// Adds piece `piece` of `pieces` of all rows, in `cuts` parts.
void add_stretches(std::uint32_t rows, std::uint64_t piece, std::uint64_t pieces, std::uint32_t cuts,
                   std::vector<RowStretch>& to) {
  const auto begin = static_cast<std::uint32_t>(edge(rows, piece, pieces));
  const auto length = static_cast<std::uint32_t>(edge(rows, piece + 1, pieces)) - begin;
  for (std::uint32_t i = 0; i < cuts; ++i) {
    const auto first = static_cast<std::uint32_t>(edge(length, i, cuts));
    const auto last = static_cast<std::uint32_t>(edge(length, std::uint64_t{i} + 1, cuts));
    if (first < last) to.push_back({begin + first, last - first});
  }
}

}  // namespace

Result<void> check_shard(const DataSet& data, const Shard& shard) {
  const std::uint64_t parts = std::uint64_t{shard.count} * std::max(shard.skew, 1u);
  if (shard.count > 0 && shard.index < shard.count && parts <= data.train_rows()) return {};
  return Error{Errc::usage, str("shard ", shard.index + 1, " of ", shard.count,
                                shard.skew > 0 ? str(" with data.skew = ", shard.skew) : "",
                                " does not exist: the data set ", data.name, " has ", data.train_rows(),
                                " training rows")};
}

std::vector<std::uint32_t> shard_rows(const DataSet& data, const Shard& shard) {
  RUMOR_CHECK(check_shard(data, shard).ok());
  const std::uint32_t count = data.train_rows();
  std::vector<std::uint32_t> all(count), rows;
  std::iota(all.begin(), all.end(), 0u);
  Prng prng = Prng::named(shard.seed, "shards");
  const std::vector<std::uint8_t>& label = data.train.label;
  if (shard.skew == 0 || !label.empty()) prng.shuffle(std::span(all));
  if (shard.skew == 0)
    return {all.begin() + edge(count, shard.index, shard.count),
            all.begin() + edge(count, std::uint64_t{shard.index} + 1, shard.count)};
  if (!label.empty())
    std::stable_sort(all.begin(), all.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return label[a] < label[b]; });
  const std::uint64_t pieces = std::uint64_t{shard.count} * shard.skew;
  for (const std::uint64_t piece : drawn_pieces(shard, shard.skew, prng))
    rows.insert(rows.end(), all.begin() + edge(count, piece, pieces), all.begin() + edge(count, piece + 1, pieces));
  return rows;
}

std::vector<RowStretch> shard_stretches(const DataSet& data, const Shard& shard) {
  RUMOR_CHECK(check_shard(data, shard).ok());
  RUMOR_CHECK(data.vocabulary > 0);
  constexpr std::uint32_t stretches_wanted = 16;  // for each peer
  const std::uint32_t count = data.train_rows(), share = count / shard.count;
  const std::uint32_t length = std::clamp(share / stretches_wanted, 1u, stretch_rows);
  const std::uint32_t parts = (share + length - 1) / length;
  // As many pieces for every peer, so that shards differ by a few rows.
  const std::uint32_t pieces = shard.skew > 0 ? shard.skew : parts;
  const std::uint32_t cuts = shard.skew > 0 ? (parts + pieces - 1) / pieces : 1;
  Prng prng = Prng::named(shard.seed, "shards");
  std::vector<RowStretch> stretches;
  for (const std::uint64_t piece : drawn_pieces(shard, pieces, prng))
    add_stretches(count, piece, std::uint64_t{shard.count} * pieces, cuts, stretches);
  return stretches;
}

}  // namespace rumor::models
