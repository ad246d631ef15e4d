#include "models/evaluate/ensemble.h"

#include <algorithm>

#include "models/evaluate/test_batches.h"
#include "models/kernels/portable_math.h"
#include "runtime/base/check.h"

namespace rumor::models {

namespace {

// Sums over the rows of a batch.
struct Score {
  double loss = 0, right = 0, rows = 0;
};

// The target of row r of `predicted` is `wanted(r)`.
template <class Wanted>
void add(Score& score, std::span<const float> predicted, std::size_t classes, const Wanted& wanted) {
  for (std::size_t r = 0; r * classes < predicted.size(); ++r) {
    const auto row = predicted.subspan(r * classes, classes);
    const std::size_t want = wanted(r);
    // Below this a float has no digits left.
    score.loss -= portable_log(std::max(1e-38, static_cast<double>(row[want])));
    score.right += std::max_element(row.begin(), row.end()) - row.begin() == static_cast<std::ptrdiff_t>(want) ? 1 : 0;
    ++score.rows;
  }
}

// States of an ensemble from batch to batch: each model has its own.
class States {
 public:
  States(std::size_t models, std::size_t floats) : floats_(floats), of_(models) {}

  void begin(std::uint32_t rows) {
    for (std::vector<float>& state : of_) state.assign(rows * floats_, 0.0f);
  }
  std::span<float> of(std::size_t model, std::uint32_t rows) { return std::span(of_[model]).first(rows * floats_); }

 private:
  std::size_t floats_;
  std::vector<std::vector<float>> of_;
};

// states: go on with the batch; null: all begin with that of the batch, which stays.
void predict_together(Model& model, Ensemble weights, Batch batch, States* states, std::vector<float>& out) {
  RUMOR_CHECK(!weights.empty());
  std::vector<float> one(model.predictions(batch.rows));
  out.assign(one.size(), 0.0f);
  const float share = 1.0f / static_cast<float>(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (states != nullptr) batch.state = states->of(i, batch.rows);
    model.predict(weights[i], batch, one);
    if (states != nullptr) model.state_after(batch.state);
    for (std::size_t at = 0; at < one.size(); ++at) out[at] += share * one[at];
  }
}

}  // namespace

void mean_prediction(Model& model, Ensemble weights, const Batch& batch, std::vector<float>& out) {
  predict_together(model, weights, batch, nullptr, out);
}

Evaluation evaluate_ensemble(Model& model, const DataSet& data, Ensemble weights) {
  constexpr std::size_t floats_max = 4 << 20;  // of predictions at a time
  const auto fits = static_cast<std::uint32_t>(floats_max / model.predictions(1));
  const std::uint32_t block = std::clamp(fits, 1u, data.evaluation_block());
  const bool text = data.vocabulary > 0, carries = model.state_floats() > 0;
  const std::size_t context = data.context;
  States states(weights.size(), model.state_floats());
  std::vector<float> mean;
  Score score;
  each_test_batch(data, UINT32_MAX, block, carries, [&](const Batch& batch, bool begins) {
    if (begins) states.begin(batch.rows);
    predict_together(model, weights, batch, carries ? &states : nullptr, mean);
    if (text)
      add(score, mean, data.vocabulary,
          [&](std::size_t r) { return batch.tokens[r / context * (context + 1) + r % context + 1]; });
    else
      add(score, mean, data.classes, [&](std::size_t r) { return batch.label[r]; });
  });
  Evaluation evaluation{score.loss / score.rows, {}};
  if (!text) evaluation.accuracy = score.right / score.rows;
  return evaluation;
}

}  // namespace rumor::models
