#include "models/optimizers/hidden_matrices.h"

#include "models/families/model.h"
#include "runtime/base/check.h"

namespace rumor::models {

std::vector<HiddenMatrix> hidden_matrices(const Model& model) {
  std::vector<HiddenMatrix> all;
  for (const TensorInfo& tensor : model.layout().tensors()) {
    const std::uint32_t count = model.hidden_matrices(tensor);
    if (count == 0) continue;
    RUMOR_CHECK(tensor.cols() % count == 0);
    const std::uint32_t cols = tensor.cols() / count;
    for (std::uint32_t i = 0; i < count; ++i)
      all.push_back({tensor.offset + i * cols, tensor.rows(), cols, tensor.cols()});
  }
  return all;
}

}  // namespace rumor::models
