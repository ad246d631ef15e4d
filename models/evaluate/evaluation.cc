#include "models/evaluate/evaluation.h"

#include <algorithm>
#include <vector>

#include "models/evaluate/test_batches.h"

namespace rumor::models {
namespace {

// Sums over rows, and at the end their means.
class Means {
 public:
  void add(const Evaluation& part, std::uint32_t rows) {
    sum_.loss += part.loss * rows;
    if (part.accuracy) sum_.accuracy = sum_.accuracy.value_or(0) + *part.accuracy * rows;
    rows_ += rows;
  }
  Evaluation mean() const {
    Evaluation mean = sum_;
    mean.loss /= rows_;
    if (mean.accuracy) *mean.accuracy /= rows_;
    return mean;
  }

 private:
  Evaluation sum_{0, {}};
  std::uint32_t rows_ = 0;
};

}  // namespace

Evaluation evaluate_on_test(const DataSet& data, std::uint32_t rows_max,
                            const std::function<Evaluation(const Batch&)>& evaluate) {
  Means means;
  each_test_batch(data, rows_max, data.evaluation_block(), false,
                  [&](const Batch& batch, bool) { means.add(evaluate(batch), batch.rows); });
  return means.mean();
}

Evaluation evaluate_on_test(Model& model, const DataSet& data, std::span<const float> weights,
                            std::uint32_t rows_max) {
  const std::size_t floats = model.state_floats();
  if (floats == 0)
    return evaluate_on_test(data, rows_max, [&](const Batch& batch) { return model.evaluate(weights, batch); });
  Means means;
  std::vector<float> state;
  each_test_batch(data, rows_max, data.evaluation_block(), true, [&](Batch batch, bool begins) {
    if (begins) state.assign(batch.rows * floats, 0.0f);
    batch.state = std::span(state).first(batch.rows * floats);
    means.add(model.evaluate(weights, batch), batch.rows);
    model.state_after(batch.state);
  });
  return means.mean();
}

}  // namespace rumor::models
