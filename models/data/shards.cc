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
  std::vector<std::uint32_t> pieces(std::size_t{shard.count} * shard.skew);
  std::iota(pieces.begin(), pieces.end(), 0u);
  prng.shuffle(std::span(pieces));
  for (std::uint32_t i = 0; i < shard.skew; ++i) {
    const std::uint64_t piece = pieces[std::size_t{shard.index} * shard.skew + i];
    rows.insert(rows.end(), all.begin() + edge(count, piece, pieces.size()),
                all.begin() + edge(count, piece + 1, pieces.size()));
  }
  return rows;
}

}  // namespace rumor::models
