#include "models/evaluate/evaluation.h"

#include <algorithm>

namespace rumor::models {

Evaluation evaluate_on_test(const DataSet& data, std::uint32_t rows_max,
                            const std::function<Evaluation(const Batch&)>& evaluate) {
  const std::uint32_t rows = std::min(rows_max, data.test_rows());
  const std::uint32_t block = data.evaluation_block();
  BatchMemory memory;
  Evaluation mean{0, {}};
  for (std::uint32_t first = 0; first < rows; first += block) {
    const std::uint32_t count = std::min(block, rows - first);
    const Evaluation part = evaluate(data.test_batch(first, count, memory));
    mean.loss += part.loss * count;
    if (part.accuracy) mean.accuracy = mean.accuracy.value_or(0) + *part.accuracy * count;
  }
  mean.loss /= rows;
  if (mean.accuracy) *mean.accuracy /= rows;
  return mean;
}

Evaluation evaluate_on_test(Model& model, const DataSet& data, std::span<const float> weights,
                            std::uint32_t rows_max) {
  return evaluate_on_test(data, rows_max, [&](const Batch& batch) { return model.evaluate(weights, batch); });
}

}  // namespace rumor::models
