// Several models that answer together: the mean of the probabilities they give.
//
// Thread: one caller at a time, as the model.
#pragma once

#include <span>
#include <vector>

#include "models/data/dataset.h"
#include "models/families/model.h"

namespace rumor::models {

// The weights of each, [params] floats; of one layout, that of the model they are given with. At least one.
using Ensemble = std::span<const std::span<const float>>;

// The mean prediction for one batch: `out` becomes [model.predictions(batch.rows)]. All begin with batch.state, which
// stays.
void mean_prediction(Model& model, Ensemble weights, const Batch& batch, std::vector<float>& out);

// Cross-entropy and, of classes, accuracy of the mean prediction on the whole test set. Of a model with a state, each
// carries its own through the held-out text (models/evaluate/test_batches.h).
Evaluation evaluate_ensemble(Model& model, const DataSet& data, Ensemble weights);

}  // namespace rumor::models
