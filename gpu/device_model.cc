#include "gpu/device_model.h"

#include "gpu/gpt.h"
#include "gpu/mlp.h"
#include "runtime/base/text.h"

namespace rumor::gpu {

Result<std::unique_ptr<DeviceModel>> make_device_model(const Gpu& gpu, const models::ModelConfig& config,
                                                       Precision precision) {
  if (config.family == "mlp") {
    auto mlp = DeviceMlp::create(gpu, config, precision);
    if (!mlp) return mlp.error();
    return std::unique_ptr<DeviceModel>(std::make_unique<DeviceMlp>(std::move(mlp).value()));
  }
  if (config.family == "gpt") {
    auto gpt = DeviceGpt::create(gpu, config, precision);
    if (!gpt) return gpt.error();
    return std::unique_ptr<DeviceModel>(std::make_unique<DeviceGpt>(std::move(gpt).value()));
  }
  return Error{Errc::usage,
               str("model.family = \"", config.family, "\" is not possible on a GPU yet; use --device cpu")};
}

}  // namespace rumor::gpu
