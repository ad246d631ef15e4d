// Lanes: rows of a text in the order of the text, for a model that carries a state from row to row.
//
// A shard is cut into stretches of rows that follow one another (shard_stretches()). Lane i of a batch walks one
// stretch, a row in each batch. At its end it begins the next one of the shuffled shard, and its state begins with
// zeros. So row i of a batch continues row i of the batch before, or nothing, and the state says which. An epoch deals
// each stretch once; with more lanes than stretches, lanes walk one text at the same time.
//
// The order follows from the generator, the shard and the number of lanes; the states are the model's. Nothing of it is
// in a checkpoint: a restarted peer begins new stretches.
//
// Thread: one owner. Memory: eight bytes a stretch, and the states.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/data/dataset.h"
#include "runtime/base/prng.h"

namespace rumor::models {

class Lanes {
 public:
  // state_floats: of a row, Model::state_floats(). Requires: check_shard(); lanes >= 1.
  Lanes(const DataSet& data, const Shard& shard, std::uint32_t lanes, std::size_t state_floats);

  // The next row of each lane. A lane that begins a stretch gets a state of zeros. Requires: as many rows as lanes.
  void next(Prng& prng, std::span<std::uint32_t> rows);
  // The state before the rows that next() gave, [lanes][state_floats]; the model leaves there that after them.
  std::span<float> state() { return state_; }
  // Rows of the shard.
  std::uint32_t rows() const { return rows_; }

 private:
  std::vector<RowStretch> order_;  // of the shard's stretches, in this epoch
  std::vector<RowStretch> lane_;   // what is left of the stretch of each lane
  std::size_t at_;              // the next of order_
  std::uint32_t rows_ = 0;
  std::size_t state_floats_;
  std::vector<float> state_;
};

}  // namespace rumor::models
