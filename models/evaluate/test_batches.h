// The test rows of an evaluation, in batches that bound a model's activations.
//
// Rows that are independent come one after another. A model that carries a state from row to row (Model::state_floats)
// is evaluated as it is trained: in lanes, each of which walks a stretch of rows that follow one another in the
// held-out text. There is a lane for each stretch_rows test rows, or one where there are fewer; lanes begin evenly
// spread over the text, with a state of zeros. So one row in stretch_rows, or fewer, knows nothing of what came before.
//
// Thread: a plain function.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "models/data/dataset.h"

namespace rumor::models {

// `begins`: the rows have nothing before them; else row i goes on where row i of the batch before ended. A batch that
// goes on may have fewer rows than the one before, never more.
using TakeTestBatch = std::function<void(const Batch& batch, bool begins)>;

// The stretches that `rows` test rows of a model with a state are made of. They are disjoint and, if rows is
// data.held_out_rows(), the whole held-out text; the longest come first. Requires: a text; `rows` from 1 to
// held_out_rows().
std::vector<RowStretch> test_stretches(const DataSet& data, std::uint32_t rows);

// Hands over data.test_rows() rows, or rows_max if these are fewer, at most `block` at a time. `in_lanes`: as a model
// with a state needs them.
void each_test_batch(const DataSet& data, std::uint32_t rows_max, std::uint32_t block, bool in_lanes,
                     const TakeTestBatch& take);

}  // namespace rumor::models
