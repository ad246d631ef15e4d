// Loss and accuracy on a test set, in blocks that bound a model's activations.
//
// Thread: plain functions, called by the owner of the model.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "models/data/dataset.h"
#include "models/families/model.h"

namespace rumor::models {

// Means over the first `rows_max` test rows, of a model without a state from row to row. `evaluate`: one block of them.
Evaluation evaluate_on_test(const DataSet& data, std::uint32_t rows_max,
                            const std::function<Evaluation(const Batch&)>& evaluate);
// The same for any model. One with a state carries it through the held-out text (models/evaluate/test_batches.h), and
// its `rows_max` rows are spread over all of that.
Evaluation evaluate_on_test(Model& model, const DataSet& data, std::span<const float> weights,
                            std::uint32_t rows_max);

}  // namespace rumor::models
