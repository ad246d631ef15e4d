#include "gpu/models/device_model.h"

#include "gpu/models/cnn.h"
#include "gpu/models/gpt.h"
#include "gpu/models/llama.h"
#include "gpu/models/mlp.h"
#include "runtime/base/text.h"

namespace rumor::gpu {

namespace {

template <class Model>
Result<std::unique_ptr<DeviceModel>> made(Result<Model> model) {
  if (!model) return model.error();
  return std::unique_ptr<DeviceModel>(std::make_unique<Model>(std::move(model).value()));
}

}  // namespace

Result<float> DeviceModel::loss_and_gradient(const DeviceArray<float>& params, const models::Batch& batch,
                                             const DeviceArray<float>& gradient) {
  if (auto sent = send(batch, batch.rows); !sent) return sent.error();
  if (auto begun = compute(params, gradient); !begun) return begun.error();
  return loss();
}

Error no_soft_targets() {
  return {Errc::usage, "soft targets are not possible on a GPU yet; use --device cpu"};
}

Result<std::unique_ptr<DeviceModel>> make_device_model(const Gpu& gpu, const models::ModelConfig& config,
                                                       Precision precision) {
  if (config.units != models::UnitRange{})
    return Error{Errc::usage, "a part of a model does not train on a GPU yet; use --device cpu"};
  if (config.adapter.is_on())
    return Error{Errc::usage,
                 str("model.adapter = \"", config.adapter.kind, "\" is not possible on a GPU yet; use --device cpu")};
  if (config.family == "mlp") return made(DeviceMlp::create(gpu, config, precision));
  if (config.family == "cnn") return made(DeviceCnn::create(gpu, config, precision));
  if (config.family == "gpt") return made(DeviceGpt::create(gpu, config, precision));
  if (config.family == "llama") return made(DeviceLlama::create(gpu, config, precision));
  if (config.family == "lstm")
    return Error{Errc::usage,
                 str("model.family = \"", config.family, "\" does not train on a GPU; use --device cpu")};
  return models::make_model(config).error();  // names the families
}

}  // namespace rumor::gpu
