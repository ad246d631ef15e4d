// The first losses of GPT-2 on a device, in float32: what tests/gpu/card/torch_gpt.py makes again with PyTorch.
#include <vector>

#include "gpu/models/gpt.h"
#include "models/optimizers/optimizer.h"
#include "models/weights/safetensors_writer.h"
#include "runtime/base/text.h"
#include "tests/gpu/card/bench_model.h"
#include "tests/gpu/card/bench_support.h"

namespace rumor::gpu {

bool write_losses(const Gpu& gpu, bool emulated, const std::string& path) {
  constexpr int steps = 10;
  constexpr double rate = 1e-3;
  constexpr std::uint32_t rows = 2;
  const models::ModelConfig config = gpt2_config(emulated);
  DeviceGpt gpt = must(DeviceGpt::create(gpu, config, Precision::fp32));
  const std::uint32_t params = gpt.layout().params();
  std::vector<float> weights = models::to_floats(models::initial_weights(*must(models::make_gpt(config)), 1, 24), 24);
  const std::vector<float> start = weights;
  std::vector<models::Token> tokens(rows * (std::size_t{config.context} + 1));
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<models::Token>((31 * i * i + 17 * i) % config.vocabulary);
  models::Batch batch;
  batch.rows = rows;
  batch.tokens = tokens;

  const auto optimizer = must(models::make_optimizer({.kind = "adamw"}, params));
  const auto on_weights = must(DeviceArray<float>::create(gpu, params, "weights"));
  const auto on_gradient = must(DeviceArray<float>::create(gpu, params, "a gradient"));
  std::vector<float> gradient(params);
  std::string losses;
  for (int step = 0; step < steps; ++step) {
    on_weights.write(weights.data(), params);
    Result<float> loss = gpt.loss_and_gradient(on_weights, batch, on_gradient);
    if (!loss && is_no_cublas(loss.error())) return false;
    losses += str(step == 0 ? "" : " ", must(std::move(loss)));
    must(on_gradient.read(gradient.data(), params));
    optimizer->step(gradient, rate, gradient, weights);
    for (std::uint32_t i = 0; i < params; ++i) weights[i] += gradient[i];
  }
  std::vector<models::SafetensorsTensor> tensors;
  for (const TensorInfo& tensor : gpt.layout().tensors())
    tensors.push_back({tensor.name, tensor.shape, std::span(start).subspan(tensor.offset, tensor.size)});
  must(models::write_safetensors(
      path, tensors,
      {{"losses", losses}, {"rate", str(rate)}, {"rows", str(rows)}, {"heads", str(config.heads)}}));
  return true;
}

}  // namespace rumor::gpu
