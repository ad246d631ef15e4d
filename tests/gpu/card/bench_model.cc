#include "tests/gpu/card/bench_model.h"

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "gpu/compress/codec.h"
#include "gpu/compress/compressor.h"
#include "gpu/device/repeated.h"
#include "gpu/models/device_model.h"
#include "gpu/models/mlp.h"
#include "gpu/optimizers/optimizer.h"
#include "models/optimizers/hidden_matrices.h"
#include "models/optimizers/optimizer.h"
#include "tests/gpu/card/bench_support.h"

namespace rumor::gpu {
namespace {

struct Shape {
  std::uint32_t batch, context, heads, head_size, vocabulary;
  std::uint32_t rows() const { return batch * context; }
  std::uint32_t width() const { return heads * head_size; }
};

Shape shape_of(bool emulated) {
  return emulated ? Shape{1, 20, 2, 8, 50} : Shape{8, 1024, 12, 64, 50257};
}

DeviceArray<float> floats(const Gpu& gpu, std::size_t size) {
  return must(DeviceArray<float>::create(gpu, size, "a benchmark"));
}

// The widest product of a layer, with GELU behind it, in each precision.
std::string products(const Gpu& gpu, bool emulated, const Shape& s) {
  const std::uint32_t d = s.width();
  const DeviceArray<float> x = noise(gpu, std::size_t{s.rows()} * d, 1),
                           weight = noise(gpu, 4 * std::size_t{d} * d, 0.02f),
                           bias = noise(gpu, 4 * std::size_t{d}, 0.1f), y = floats(gpu, 4 * std::size_t{s.rows()} * d),
                           before = floats(gpu, 4 * std::size_t{s.rows()} * d);
  std::string all;
  constexpr const char* names[] = {"fp32", "tf32", "bf16"};
  for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::bf16}) {
    MatmulArgs args{};
    args.rows = s.rows();
    args.columns = 4 * d;
    args.depth = d;
    args.a = x.data();
    args.b = weight.data();
    args.y = y.data();
    args.bias = bias.data();
    args.before = before.data();
    args.precision = precision;
    args.epilogue = Epilogue::bias_gelu;
    const Result<void> first = gpu.matmul(args);
    if (!first && is_no_cublas(first.error())) return "null";
    must(first);
    const double seconds = seconds_of(gpu, emulated, 20, [&] { must(gpu.matmul(args)); });
    const double operations = 2.0 * args.rows * args.columns * args.depth;
    all += (all.empty() ? "{" : ", ") + number(names[static_cast<std::uint32_t>(precision)], operations / seconds);
  }
  return all + "}";
}

// `rounded`: of bfloat16.
std::string attention(const Gpu& gpu, bool emulated, const Shape& s, bool rounded) {
  const std::size_t all = std::size_t{s.rows()} * s.width(), rows = std::size_t{s.rows()} * s.heads;
  const DeviceArray<float> qkv = noise(gpu, 3 * all, 1), change = noise(gpu, all, 1), y = floats(gpu, all),
                           top = floats(gpu, rows), weight = floats(gpu, rows), dot = floats(gpu, 2 * rows),
                           qkv_change = floats(gpu, 3 * all);
  const ModelTable& model = gpu.table().model;
  const auto in_bf16 = [&](const DeviceArray<float>& values) {
    auto made = must(DeviceArray<Bf16>::create(gpu, values.size(), "a benchmark"));
    model.round(gpu.device(), values.size(), values.data(), made.data());
    return made;
  };
  const DeviceArray<Bf16> bf16_qkv = in_bf16(qkv), bf16_change = in_bf16(change), bf16_y = in_bf16(y),
                          bf16_qkv_change = in_bf16(qkv_change);
  const auto either = [&](const DeviceArray<float>& values, const DeviceArray<Bf16>& as_bf16) {
    return rounded ? Numbers(as_bf16.data()) : Numbers(values.data());
  };
  const AttentionArgs args{s.batch,    s.context,  s.heads,      s.head_size, either(qkv, bf16_qkv), either(y, bf16_y),
                           top.data(), weight.data()};
  const AttentionChange back{args, either(change, bf16_change), dot.data(), either(qkv_change, bf16_qkv_change)};
  const double forward = seconds_of(gpu, emulated, 10, [&] { model.attention(gpu.device(), &args); });
  const double backward = seconds_of(gpu, emulated, 10, [&] { model.attention_backward(gpu.device(), &back); });
  return "{" + number("forward_s", forward) + ", " + number("backward_s", backward) + "}";
}

std::string layer_norm(const Gpu& gpu, bool emulated, const Shape& s) {
  const Matrix size{s.rows(), s.width()};
  const std::size_t all = std::size_t{size.rows} * size.columns;
  const DeviceArray<float> x = noise(gpu, all, 1), more = noise(gpu, all, 1), sum = floats(gpu, all),
                           gain = noise(gpu, size.columns, 1), bias = noise(gpu, size.columns, 1), y = floats(gpu, all),
                           mean = floats(gpu, size.rows), scale = floats(gpu, size.rows), change = noise(gpu, all, 0),
                           partial = floats(gpu, 2 * chunks_of(size.rows) * size.columns),
                           gain_change = floats(gpu, size.columns), bias_change = floats(gpu, size.columns);
  const LayerNormArgs args{size,        x.data(), more.data(), sum.data(),  gain.data(),
                           bias.data(), y.data(), mean.data(), scale.data()};
  const LayerNormChange back{size,          sum.data(),  gain.data(), mean.data(),    scale.data(),
                             change.data(), more.data(), nullptr,     partial.data(), gain_change.data(),
                             bias_change.data()};
  const ModelTable& model = gpu.table().model;
  const double forward = seconds_of(gpu, emulated, 20, [&] { model.layer_norm(gpu.device(), &args); });
  const double backward = seconds_of(gpu, emulated, 20, [&] { model.layer_norm_backward(gpu.device(), &back); });
  return number("layer_norm_s", forward) + ", " + number("layer_norm_backward_s", backward);
}

// The logits become their gradient, so every call but the first works on that: the same traffic.
std::string cross_entropy(const Gpu& gpu, bool emulated, const Shape& s) {
  const DeviceArray<float> logits = noise(gpu, std::size_t{s.rows()} * s.vocabulary, 1), loss = floats(gpu, s.rows());
  const auto target = must(DeviceArray<std::uint16_t>::create(gpu, s.rows(), "a benchmark"));
  const auto total = must(DeviceArray<double>::create(gpu, 1, "a benchmark"));
  gpu.table().fill(gpu.device(), target.data(), 0, s.rows() * sizeof(std::uint16_t));
  const CrossEntropyArgs args{{s.rows(), s.vocabulary}, logits.data(), target.data(), 1e-3f, loss.data(), total.data()};
  return number("cross_entropy_s",
                seconds_of(gpu, emulated, 5, [&] { gpu.table().model.cross_entropy(gpu.device(), &args); }));
}

struct StepSeconds {
  double plain, repeated;
  double whole = 0;  // repeated, with `more` behind it
};

// Seconds for loss and gradient of one batch: kernel by kernel, and recorded.
template <class More>
StepSeconds seconds_of_step(const Gpu& gpu, bool emulated, int calls, DeviceModel& model,
                            const DeviceArray<float>& weights, const models::Batch& batch,
                            const DeviceArray<float>& gradient, const More& more) {
  StepSeconds seconds{};
  seconds.plain = seconds_of(gpu, emulated, calls, [&] { must(model.loss_and_gradient(weights, batch, gradient)); });
  Repeated step(gpu);
  const auto repeat = [&] {
    must(model.send(batch, batch.rows));
    must(step.run({1}, [&] { return model.compute(weights, gradient); }));
    must(model.loss());
  };
  for (int warm = 0; warm < 2; ++warm) repeat();
  seconds.repeated = seconds_of(gpu, emulated, calls, repeat);
  const auto whole = [&] {
    repeat();
    more();
  };
  for (int warm = 0; warm < (emulated ? 1 : 10); ++warm) whole();
  seconds.whole = seconds_of(gpu, emulated, 2 * calls, whole);
  return seconds;
}

// The step rule of the AdamW optimizer; its moments and weights are not part of it.
StepRule adamw() {
  const float weight = 0;
  const auto optimizer = must(models::make_optimizer({.kind = "adamw"}, 1));
  return optimizer->begin_step(1e-4, {&weight, 1});
}

models::Batch drawn_rows(const Shape& s, std::vector<models::Token>& tokens) {
  tokens.resize(std::size_t{s.batch} * (s.context + 1));
  Prng prng(2);
  for (models::Token& token : tokens) token = static_cast<models::Token>(prng.below(s.vocabulary));
  models::Batch batch;
  batch.rows = s.batch;
  batch.tokens = tokens;
  return batch;
}

// The integers behind weights, for updates to move.
DeviceArray<std::int32_t> on_grid(const Gpu& gpu, const DeviceArray<float>& weights) {
  std::vector<float> values(weights.size());
  must(weights.read(values.data(), values.size()));
  std::vector<std::int32_t> integers(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) integers[i] = static_cast<std::int32_t>(values[i] * 0x1p24f);
  auto made = must(DeviceArray<std::int32_t>::create(gpu, integers.size(), "a benchmark"));
  made.write(integers.data(), integers.size());
  must(gpu.wait());
  return made;
}

// Operations of a step: 6 for each token and weight in a product, and those of attention, as if queries saw all keys.
double operations_of(const models::ModelConfig& config, std::uint32_t params, const Shape& s) {
  const std::uint32_t looked_up = config.tied_head ? 0 : config.vocabulary * config.embedding;
  return 6.0 * (params - looked_up) * s.rows() + 12.0 * s.rows() * s.context * s.width() * config.layers;
}

// A whole step: loss and gradient in bf16; then optimizer, residual, selection, payload and the own update in the
// weights, the only costs of gossip to the trainer. It trains: each step has gradients of its own.
std::string training(const Gpu& gpu, bool emulated, const models::ModelConfig& config) {
  Shape s = shape_of(emulated);
  s.vocabulary = config.vocabulary;
  const std::unique_ptr<DeviceModel> model = must(make_device_model(gpu, config, Precision::bf16));
  const std::uint32_t params = model->layout().params();
  const DeviceArray<float> weights = noise(gpu, params, 0.02f), gradient = floats(gpu, params),
                           first = noise(gpu, params, 0), second = noise(gpu, params, 0);
  std::vector<models::Token> tokens;
  const models::Batch batch = drawn_rows(s, tokens);
  const auto learns = model->loss_and_gradient(weights, batch, gradient);
  if (!learns && is_no_cublas(learns.error())) return "null";
  must(learns);

  const DeviceArray<std::int32_t> integers = on_grid(gpu, weights);
  DeviceCompressor compressor = must(DeviceCompressor::create(gpu, model->layout(), {.density = 0.001}));
  DeviceCodec codec(gpu, model->layout());
  DeviceUpdate update;
  StepRule rule = adamw();
  rule.first = first.data();
  rule.second = second.data();
  rule.weights = weights.data();
  const auto send = [&] {
    must(compressor.absorb_step(rule, gradient, update));
    must(codec.encode(update));
    const Entries entries = update.entries();
    gpu.table().apply(gpu.device(), &entries, integers.data(), weights.data(), 0x1p-24f);
  };
  const StepSeconds step = seconds_of_step(gpu, emulated, 3, *model, weights, batch, gradient, send);
  return "{" + number("loss_and_gradient_s", step.plain) + ", " + number("repeated_s", step.repeated) + ", " +
         number("optimizer_and_update_s", step.whole - step.repeated) + ", " +
         number("second_looks", static_cast<double>(compressor.second_looks())) + ", " +
         number("tokens_per_second", s.rows() / step.whole) + ", " +
         number("operations_per_second", operations_of(config, params, s) / step.repeated) + "}";
}

// Muon's step of GPT-2, with products in bf16: kernel by kernel where no two calls are alike, and recorded.
std::string muon(const Gpu& gpu, bool emulated) {
  const auto model = must(models::make_model(gpt2_config(emulated)));
  const std::uint32_t params = model->layout().params();
  const auto optimizer =
      must(models::make_optimizer({.kind = "muon"}, params, models::hidden_matrices(*model)));
  DeviceOptimizer on_gpu = must(DeviceOptimizer::create(gpu, *optimizer, Precision::bf16));
  const DeviceArray<float> weights = noise(gpu, params, 0.02f), first = noise(gpu, params, 1e-3f),
                           second = noise(gpu, params, 1e-3f), change = floats(gpu, params);
  const Result<void> begun = on_gpu.add_step(first, 1e-4, weights, change);
  if (!begun && is_no_cublas(begun.error())) return "null";
  must(begun);
  const double plain = seconds_of(gpu, emulated, 2, [&] {
    for (const DeviceArray<float>* gradient : {&second, &first})
      must(on_gpu.add_step(*gradient, 1e-4, weights, change));
  });
  const double repeated = seconds_of(gpu, emulated, 3, [&] { must(on_gpu.add_step(first, 1e-4, weights, change)); });
  return "{" + number("plain_s", plain / 2) + ", " + number("repeated_s", repeated) + "}";
}

// A model so small that its kernels take less long than the host takes to begin them: 784-128-128-10, 64 rows.
std::string small_model(const Gpu& gpu, bool emulated) {
  models::ModelConfig config;
  config.hidden = {128, 128};
  config.inputs = emulated ? 20 : 784;
  config.classes = 10;
  DeviceMlp mlp = must(DeviceMlp::create(gpu, config, Precision::fp32));
  const std::uint32_t params = mlp.layout().params(), rows = emulated ? 4 : 64;
  const DeviceArray<float> weights = noise(gpu, params, 0.02f), gradient = floats(gpu, params);
  const std::vector<float> x(std::size_t{rows} * config.inputs, 0.5f);
  const std::vector<std::uint8_t> label(rows, 3);
  const models::Batch batch{x, label, rows};
  if (!mlp.loss_and_gradient(weights, batch, gradient)) return "null";
  const StepSeconds step = seconds_of_step(gpu, emulated, 200, mlp, weights, batch, gradient, [] {});
  return "{" + number("loss_and_gradient_s", step.plain) + ", " + number("repeated_s", step.repeated) + "}";
}

}  // namespace

models::ModelConfig gpt2_config(bool emulated) {
  const Shape s = shape_of(emulated);
  models::ModelConfig config;
  config.family = "gpt";
  config.vocabulary = s.vocabulary;
  config.context = s.context;
  config.layers = emulated ? 1 : 12;
  config.heads = s.heads;
  config.embedding = s.width();
  return config;
}

std::string kernel_benchmarks(const Gpu& gpu, bool emulated) {
  const Shape shape = shape_of(emulated);
  return "{\"products_per_second\": " + products(gpu, emulated, shape) +
         ", \"attention\": " + attention(gpu, emulated, shape, false) +
         ", \"attention_bf16\": " + attention(gpu, emulated, shape, true) + ", " + layer_norm(gpu, emulated, shape) +
         ", " + cross_entropy(gpu, emulated, shape) + "}";
}

models::ModelConfig llama_config(bool emulated) {
  models::ModelConfig config = gpt2_config(emulated);
  config.family = "llama";
  config.vocabulary = emulated ? 50 : 32'000;
  config.kv_heads = emulated ? 1 : 4;
  config.feed_forward = emulated ? 24 : 2048;
  config.tied_head = false;
  return config;
}

std::string gpt2_benchmark(const Gpu& gpu, bool emulated) {
  return training(gpu, emulated, gpt2_config(emulated));
}

std::string llama_benchmark(const Gpu& gpu, bool emulated) {
  return training(gpu, emulated, llama_config(emulated));
}

std::string muon_benchmark(const Gpu& gpu, bool emulated) {
  return muon(gpu, emulated);
}

std::string mlp_benchmark(const Gpu& gpu, bool emulated) {
  return small_model(gpu, emulated);
}

}  // namespace rumor::gpu
