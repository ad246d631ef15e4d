#include "models/families/model.h"

#include "models/families/cnn.h"
#include "models/families/gpt.h"
#include "models/families/mlp.h"
#include "runtime/base/text.h"

namespace rumor::models {

Result<std::unique_ptr<Model>> make_model(const ModelConfig& config) {
  if (config.family == "mlp") return make_mlp(config);
  if (config.family == "cnn") return make_cnn(config);
  if (config.family == "gpt") return make_gpt(config);
  return Error{Errc::usage, str("unknown model family '", config.family, "'; known: cnn, gpt, mlp")};
}

}  // namespace rumor::models
