#include "gpu/models/mlp.h"

#include <algorithm>
#include <utility>

#include "models/families/mlp.h"
#include "runtime/base/check.h"

namespace rumor::gpu {

Result<DeviceMlp> DeviceMlp::create(const Gpu& gpu, const models::ModelConfig& config, Precision precision) {
  const Result<std::unique_ptr<models::Model>> model = models::make_mlp(config);
  if (!model) return model.error();
  std::vector<std::uint32_t> widths{config.inputs};
  widths.insert(widths.end(), config.hidden.begin(), config.hidden.end());
  widths.push_back(config.classes);
  return DeviceMlp(gpu, (*model)->layout(), std::move(widths), precision);
}

Result<void> DeviceMlp::send_rows(std::span<const float> x, std::uint32_t rows) {
  RUMOR_CHECK(x.size() == std::size_t{rows} * inputs());
  for (Result<void> room : {x_.make_room(*gpu_, x.size(), "a batch"), dense_.make_room(rows)})
    if (!room) return room;
  x_.write(x.data(), x.size());
  return {};
}

Result<void> DeviceMlp::forward(const float* params, std::span<const float> x, std::uint32_t rows) {
  if (Result<void> sent = send_rows(x, rows); !sent) return sent;
  dense_.forward(params, x_.data(), rows);
  return {};
}

Result<void> DeviceMlp::send(const models::Batch& batch, std::uint32_t all_rows) {
  RUMOR_CHECK(batch.label.size() == batch.rows);
  if (!batch.soft.probability.empty()) return no_soft_targets();
  if (Result<void> sent = send_rows(batch.x, batch.rows); !sent) return sent;
  dense_.send(batch.label, all_rows);
  rows_ = batch.rows;
  return {};
}

Result<void> DeviceMlp::compute(const DeviceArray<float>& params, const DeviceArray<float>& gradient) {
  RUMOR_CHECK(params.size() >= layout_.params() && gradient.size() >= layout_.params());
  dense_.forward(params.data(), x_.data(), rows_);
  dense_.compare();
  dense_.backward(params.data(), gradient.data(), nullptr);
  return dense_.outcome();
}

Result<models::Evaluation> DeviceMlp::evaluate(const DeviceArray<float>& params, const models::Batch& batch) {
  RUMOR_CHECK(params.size() >= layout_.params());
  RUMOR_CHECK(batch.rows > 0 && batch.label.size() == batch.rows);
  constexpr std::uint32_t piece = 256;
  Tally tally;
  for (std::uint32_t first = 0; first < batch.rows; first += piece) {
    const std::uint32_t rows = std::min(piece, batch.rows - first);
    const auto x = batch.x.subspan(std::size_t{first} * inputs(), std::size_t{rows} * inputs());
    if (Result<void> done = forward(params.data(), x, rows); !done) return done.error();
    const Result<std::vector<float>> logits = dense_.outputs();
    if (!logits) return logits.error();
    tally.add(*logits, batch.label.subspan(first, rows));
  }
  return tally.evaluation();
}

Result<void> DeviceMlp::predict(const DeviceArray<float>& params, const models::Batch& batch, std::span<float> out) {
  RUMOR_CHECK(params.size() >= layout_.params());
  RUMOR_CHECK(out.size() == std::size_t{batch.rows} * classes());
  if (Result<void> done = forward(params.data(), batch.x, batch.rows); !done) return done.error();
  const Result<std::vector<float>> logits = dense_.outputs();
  if (!logits) return logits.error();
  probabilities(*logits, classes(), out);
  return {};
}

}  // namespace rumor::gpu
