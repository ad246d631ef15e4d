// Several models that answer together: the mean of the probabilities they give.
//
// Thread: one caller at a time, as the model.
#pragma once

#include <span>
#include <vector>

#include "models/dataset.h"
#include "models/model.h"

namespace rumor::sim {

// Of one batch: out [model.predictions(batch.rows)]. False, and `out` as it was, where there are no weights.
bool mean_prediction(models::Model& model, std::span<const std::span<const float>> weights, const models::Batch& batch,
                     std::vector<float>& out);

// Cross-entropy and, of classes, accuracy of the mean prediction on the whole test set. Requires: weights not empty.
models::Evaluation evaluate_ensemble(models::Model& model, const models::DataSet& data,
                                     std::span<const std::span<const float>> weights);

}  // namespace rumor::sim
