#include "models/families/model.h"

#include <algorithm>

#include "models/families/adapted_model.h"
#include "models/families/cnn.h"
#include "models/families/gpt.h"
#include "models/families/llama.h"
#include "models/families/lstm.h"
#include "models/families/mlp.h"
#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::models {

Result<std::unique_ptr<Model>> make_model(const ModelConfig& config) {
  if (!config.sizes.empty() && config.family != "cnn")
    return Error{Errc::usage, str("data.resolution shrinks pictures, which only model.family = \"cnn\" takes in any ",
                                  "size, and this one is \"", config.family, "\"; leave data.resolution out")};
  if (config.exit.is_on()) return make_exited_model(config);
  if (config.adapter.is_on()) return make_adapted_model(config);
  if (config.family == "mlp") return make_mlp(config);
  if (config.family == "cnn") return make_cnn(config);
  if (config.family == "gpt") return make_gpt(config);
  if (config.family == "llama") return make_llama(config);
  if (config.family == "lstm") return make_lstm(config);
  return Error{Errc::usage, str("unknown model family '", config.family, "'; known: cnn, gpt, llama, lstm, mlp")};
}

void Model::check_backward(std::uint32_t rows, std::span<const float> above_change, std::span<const float> gradient,
                           std::span<const float> below_change) const {
  RUMOR_CHECK(gradient.size() == layout().params());
  RUMOR_CHECK(above_change.size() == rows * border_floats().above);
  RUMOR_CHECK(below_change.size() == rows * border_floats().below);
}

void Model::state_after(std::span<float>) const {
  RUMOR_CHECK(false);  // there is no state
}

void Model::predict_exit(std::span<float>) {
  RUMOR_CHECK(false);  // there is no exit
}

std::uint32_t Model::hidden_matrices(const TensorInfo& tensor) const {
  const auto is_matrix = [](const TensorInfo& any) { return any.shape.size() >= 2; };
  if (!is_matrix(tensor)) return 0;
  const std::vector<TensorInfo>& all = layout().tensors();
  const auto first = std::find_if(all.begin(), all.end(), is_matrix);
  const auto last = std::find_if(all.rbegin(), all.rend(), is_matrix);
  if (part().is_first() && tensor.offset == first->offset) return 0;
  return part().is_last() && tensor.offset == last->offset ? 0 : 1;
}

}  // namespace rumor::models
