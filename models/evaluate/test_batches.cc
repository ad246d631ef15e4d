#include "models/evaluate/test_batches.h"

#include <algorithm>
#include <span>

#include "runtime/base/check.h"

namespace rumor::models {
namespace {

// A step of all these lanes after another, as long as the first one is.
void walk_lanes(const DataSet& data, std::span<const RowStretch> lanes, const TakeTestBatch& take) {
  BatchMemory memory;
  std::vector<std::uint32_t> rows;
  for (std::uint32_t step = 0; step < lanes.front().rows; ++step) {
    rows.clear();
    for (const RowStretch& lane : lanes)
      if (step < lane.rows) rows.push_back(lane.first + step);
    take(data.held_out_batch(rows, memory), step == 0);
  }
}

}  // namespace

std::vector<RowStretch> test_stretches(const DataSet& data, std::uint32_t rows) {
  RUMOR_CHECK(rows >= 1 && rows <= data.held_out_rows());
  const std::uint32_t lanes = std::max(1u, rows / stretch_rows);
  std::vector<RowStretch> all(lanes);
  std::uint32_t before = 0;
  for (std::uint32_t i = 0; i < lanes; ++i) {
    const std::uint64_t skipped = std::uint64_t{i} * (data.held_out_rows() - rows) / lanes;
    all[i] = {before + static_cast<std::uint32_t>(skipped), rows / lanes + (i < rows % lanes ? 1 : 0)};
    before += all[i].rows;
  }
  return all;
}

void each_test_batch(const DataSet& data, std::uint32_t rows_max, std::uint32_t block, bool in_lanes,
                     const TakeTestBatch& take) {
  const std::uint32_t rows = std::min(rows_max, data.test_rows());
  if (in_lanes && rows > 0) {
    const std::vector<RowStretch> lanes = test_stretches(data, rows);
    for (std::size_t first = 0; first < lanes.size(); first += block)
      walk_lanes(data, std::span(lanes).subspan(first, std::min<std::size_t>(block, lanes.size() - first)), take);
    return;
  }
  BatchMemory memory;
  for (std::uint32_t first = 0; first < rows; first += block)
    take(data.test_batch(first, std::min(block, rows - first), memory), true);
}

}  // namespace rumor::models
