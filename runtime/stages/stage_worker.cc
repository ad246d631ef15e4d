#include "runtime/stages/stage_worker.h"

#include <algorithm>
#include <utility>

#include "models/kernels/kernels.h"
#include "runtime/base/bytes.h"
#include "runtime/base/check.h"
#include "runtime/base/memory_bytes.h"
#include "runtime/base/text.h"

namespace rumor {
namespace {

using gossip::Made;
using gossip::Work;

Error unreadable(const std::string& text) {
  return {Errc::corrupt, text};
}

}  // namespace

Result<StageWorker> StageWorker::create(const models::ModelConfig& config, StageOptions options,
                                        std::shared_ptr<const models::DataSet> data,
                                        std::optional<models::BatchSampler> sampler) {
  auto model = models::make_model(config);
  if (!model) return model.error();
  return StageWorker(std::move(model).value(), config, options, std::move(data), std::move(sampler));
}

StageWorker::StageWorker(std::unique_ptr<models::Model> model, const models::ModelConfig& config,
                         StageOptions options, std::shared_ptr<const models::DataSet> data,
                         std::optional<models::BatchSampler> sampler)
    : model_(std::move(model)),
      options_(options),
      classes_(config.classes),
      vocabulary_(config.vocabulary),
      context_(config.context),
      data_(std::move(data)),
      sampler_(std::move(sampler)) {
  RUMOR_CHECK(options_.rows >= 1);
  RUMOR_CHECK(is_first() == (data_ != nullptr) && is_first() == sampler_.has_value());
  const models::BorderFloats border = model_->border_floats();
  for (LargeVector<float>* one : {&below_, &below_change_}) one->resize(options_.rows * border.below);
  for (LargeVector<float>* one : {&above_, &above_change_}) one->resize(options_.rows * border.above);
  sum_.resize(model_->layout().params());
  gradient_.resize(model_->layout().params());
}

// ---- labels ----

std::size_t StageWorker::label_bytes() const {
  if (vocabulary_ == 0) return options_.rows;
  return std::size_t{options_.rows} * (context_ + 1) * sizeof(models::Token);
}

Bytes StageWorker::labels_of(const models::Batch& batch) const {
  ByteWriter out;
  if (vocabulary_ == 0) out.raw(batch.label);
  for (const models::Token token : batch.tokens) out.u32(token);
  RUMOR_CHECK(out.size() == label_bytes());
  return out.take();
}

// Into memory_.
Result<void> StageWorker::read_labels(BytesView labels, models::Batch& batch) {
  if (labels.size() != label_bytes())
    return unreadable(str("labels of ", labels.size(), " bytes, where ", label_bytes(), " are expected"));
  if (vocabulary_ == 0) {
    memory_.label.assign(labels.begin(), labels.end());
    if (*std::max_element(labels.begin(), labels.end()) >= classes_)
      return unreadable("a label beyond the classes");
    batch.label = memory_.label;
    return {};
  }
  ByteReader in(labels);
  memory_.tokens.resize(labels.size() / sizeof(models::Token));
  for (models::Token& token : memory_.tokens)
    if ((token = in.u32()) >= vocabulary_) return unreadable("a token beyond the vocabulary");
  batch.tokens = memory_.tokens;
  return {};
}

// ---- work ----

Result<StageWorker::Rows> StageWorker::rows_of(const Work& work) {
  if (is_first()) {
    ByteReader in(*work.below);
    std::vector<std::uint32_t> numbers(options_.rows);
    for (std::uint32_t& number : numbers) number = in.u32();
    return Rows{data_->train_batch(numbers, memory_), {}};
  }
  if (work.rows != options_.rows)
    return unreadable(str("a micro-batch of ", work.rows, " rows, where ", options_.rows, " are expected"));
  Rows rows{.batch = {.rows = work.rows}, .below = below_};
  const BytesView all(*work.below);
  RUMOR_CHECK(work.label_bytes <= all.size());
  if (auto read = read_labels(all.first(work.label_bytes), rows.batch); !read) return read.error();
  const std::size_t floats = model_->border_floats().below;
  if (auto read = compress::decode_border(options_.numbers, floats, all.subspan(work.label_bytes), below_);
      !read)
    return read.error();
  return rows;
}

// Goes forward; the labels, and the border above behind them.
Bytes StageWorker::go_forward(const Rows& rows, std::span<const float> weights, Bytes labels) {
  ++forward_passes_;
  model_->forward(weights, rows.batch, rows.below, above_);
  compress::encode_border(options_.numbers, model_->border_floats().above, above_, labels);
  return labels;
}

Result<Made> StageWorker::emit(const Work& work, std::span<const float> weights) {
  const std::span<const std::uint32_t> numbers = sampler_->next_rows();
  ByteWriter own;
  for (const std::uint32_t number : numbers) own.u32(number);
  const Rows rows{data_->train_batch(numbers, memory_), {}};
  Made made{
      .bytes = go_forward(rows, weights, labels_of(rows.batch)), .own = own.take(), .rows = options_.rows};
  made.label_bytes = label_bytes();
  forwarded_ = {work.name, nullptr};
  return made;
}

Result<Made> StageWorker::forward(const Work& work, std::span<const float> weights) {
  const auto rows = rows_of(work);
  if (!rows) return rows.error();
  const BytesView labels = BytesView(*work.below).first(work.label_bytes);
  Made made{.bytes = go_forward(*rows, weights, Bytes(labels.begin(), labels.end()))};
  made.label_bytes = work.label_bytes;
  forwarded_ = {work.name, work.below};
  return made;
}

void StageWorker::ensure_forward(const Work& work, const Rows& rows, std::span<const float> weights) {
  const Forwarded wanted{work.name, is_first() ? nullptr : work.below};
  if (forwarded_ == wanted) return;
  ++forward_passes_;
  model_->forward(weights, rows.batch, rows.below, above_);
  forwarded_ = wanted;
}

Result<Made> StageWorker::backward(const Work& work, std::span<const float> weights) {
  const auto rows = rows_of(work);
  if (!rows) return rows.error();
  const models::BorderFloats border = model_->border_floats();
  if (!model_->part().is_last()) {
    if (auto read = compress::decode_border(options_.numbers, border.above, *work.change, above_change_);
        !read)
      return read.error();
  }
  ensure_forward(work, *rows, weights);
  const std::span<float> gradient = work.begins_sum ? sum_ : gradient_;
  Made made;
  made.loss = model_->backward(weights, rows->batch, rows->below, above_change_, gradient, below_change_);
  if (!work.begins_sum)
    models::kernels().axpy(static_cast<long>(sum_.size()), 1, gradient_.data(), sum_.data());
  if (!is_first()) compress::encode_border(options_.numbers, border.below, below_change_, made.bytes);
  return made;
}

Result<Made> StageWorker::make(const Work& work, std::span<const float> weights) {
  if (work.kind == Work::Kind::emit) return emit(work, weights);
  if (work.kind == Work::Kind::forward) return forward(work, weights);
  return backward(work, weights);
}

void StageWorker::mean_gradient(std::uint32_t micro_batches, std::span<float> out) const {
  RUMOR_CHECK(micro_batches >= 1 && out.size() == sum_.size());
  const auto count = static_cast<float>(micro_batches);
  std::transform(sum_.begin(), sum_.end(), out.begin(), [count](float sum) { return sum / count; });
}

std::size_t StageWorker::memory_bytes() const {
  return model_->memory_bytes() +
         capacity_bytes(below_, above_, below_change_, above_change_, sum_, gradient_);
}

}  // namespace rumor
