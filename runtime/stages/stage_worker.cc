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

StageWorker::StageWorker(std::unique_ptr<models::Model> model, models::ModelConfig config, StageOptions options,
                         std::shared_ptr<const models::DataSet> data,
                         std::optional<models::BatchSampler> sampler)
    : config_(std::move(config)),
      options_(options),
      classes_(config_.classes),
      vocabulary_(config_.vocabulary),
      context_(config_.context),
      data_(std::move(data)),
      sampler_(std::move(sampler)) {
  RUMOR_CHECK(options_.rows >= 1 && options_.passes >= 1);
  passes_.push_back({std::move(model)});
  RUMOR_CHECK(is_first() == (data_ != nullptr) && is_first() == sampler_.has_value());
  const models::BorderFloats border = this->model().border_floats();
  for (LargeVector<float>* one : {&below_, &below_change_}) one->resize(options_.rows * border.below);
  for (LargeVector<float>* one : {&above_, &above_change_}) one->resize(options_.rows * border.above);
  sums_[0].resize(this->model().layout().params());
  gradient_.resize(this->model().layout().params());
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

// ---- rows ----

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
  const std::size_t floats = model().border_floats().below;
  if (auto read = compress::decode_border(options_.numbers, floats, all.subspan(work.label_bytes), below_);
      !read)
    return read.error();
  return rows;
}

// ---- forward passes ----

StageWorker::Forwarded StageWorker::forward_of(const Work& work) const {
  return {work.name, is_first() ? nullptr : work.below};
}

// One without activations that are wanted, or else the oldest.
StageWorker::Pass& StageWorker::free_pass() {
  const auto free = std::find_if(passes_.begin(), passes_.end(), [](const Pass& pass) { return !pass.of; });
  if (free != passes_.end()) return *free;
  if (passes_.size() < options_.passes) {
    auto more = models::make_model(config_);
    RUMOR_CHECK(more.ok());  // the first one was made of the same
    return passes_.emplace_back(Pass{std::move(more).value()});
  }
  return *std::min_element(passes_.begin(), passes_.end(),
                           [](const Pass& a, const Pass& b) { return a.number < b.number; });
}

StageWorker::Pass& StageWorker::go_forward(const Work& work, const Rows& rows, std::span<const float> weights) {
  Pass& pass = free_pass();
  pass.number = ++forward_passes_;
  pass.of = forward_of(work);
  pass.model->forward(weights, rows.batch, rows.below, above_);
  return pass;
}

StageWorker::Pass& StageWorker::ensure_forward(const Work& work, const Rows& rows, std::span<const float> weights) {
  const Forwarded wanted = forward_of(work);
  const auto found =
      std::find_if(passes_.begin(), passes_.end(), [&](const Pass& pass) { return pass.of == wanted; });
  return found != passes_.end() ? *found : go_forward(work, rows, weights);
}

// The border above, of the last forward pass.
void StageWorker::add_border(Bytes& bytes) const {
  compress::encode_border(options_.numbers, model().border_floats().above, above_, bytes);
}

// ---- work ----

Result<Made> StageWorker::emit(const Work& work, std::span<const float> weights) {
  const std::span<const std::uint32_t> numbers = sampler_->next_rows();
  ByteWriter own;
  for (const std::uint32_t number : numbers) own.u32(number);
  const Rows rows{data_->train_batch(numbers, memory_), {}};
  go_forward(work, rows, weights);
  Made made{.bytes = labels_of(rows.batch), .own = own.take(), .rows = options_.rows};
  add_border(made.bytes);
  made.label_bytes = label_bytes();
  return made;
}

Result<Made> StageWorker::forward(const Work& work, std::span<const float> weights) {
  const auto rows = rows_of(work);
  if (!rows) return rows.error();
  go_forward(work, *rows, weights);
  const BytesView labels = BytesView(*work.below).first(work.label_bytes);
  Made made{.bytes = Bytes(labels.begin(), labels.end())};
  add_border(made.bytes);
  made.label_bytes = work.label_bytes;
  return made;
}

Result<Made> StageWorker::backward(const Work& work, std::span<const float> weights) {
  const auto rows = rows_of(work);
  if (!rows) return rows.error();
  const models::BorderFloats border = model().border_floats();
  if (!model().part().is_last()) {
    if (auto read = compress::decode_border(options_.numbers, border.above, *work.change, above_change_);
        !read)
      return read.error();
  }
  Pass& pass = ensure_forward(work, *rows, weights);
  pass.of.reset();  // its activations are used up
  LargeVector<float>& sum = sums_.at(work.ahead ? 1 - current_ : current_);
  sum.resize(gradient_.size());
  const std::span<float> gradient = work.begins_sum ? sum : gradient_;
  Made made;
  made.loss = pass.model->backward(weights, rows->batch, rows->below, above_change_, gradient, below_change_);
  if (!work.begins_sum)
    models::kernels().axpy(static_cast<long>(sum.size()), 1, gradient_.data(), sum.data());
  if (!is_first()) compress::encode_border(options_.numbers, border.below, below_change_, made.bytes);
  return made;
}

Result<Made> StageWorker::make(const Work& work, std::span<const float> weights) {
  RUMOR_CHECK(!work.stashed_weights || stashed_weights_.size() == weights.size());
  const std::span<const float> its = work.stashed_weights ? std::span<const float>(stashed_weights_) : weights;
  if (work.kind == Work::Kind::emit) return emit(work, its);
  if (work.kind == Work::Kind::forward) return forward(work, its);
  return backward(work, its);
}

void StageWorker::complete_step(const gossip::MakeStep& step, std::span<const float> weights, std::span<float> out) {
  const LargeVector<float>& sum = sums_.at(current_);
  RUMOR_CHECK(step.micro_batches >= 1 && out.size() == sum.size());
  const auto count = static_cast<float>(step.micro_batches);
  std::transform(sum.begin(), sum.end(), out.begin(), [count](float one) { return one / count; });
  for (Pass& pass : passes_)
    if (pass.of && std::find(step.ahead.begin(), step.ahead.end(), pass.of->name) == step.ahead.end())
      pass.of.reset();
  if (step.ahead.empty()) return;
  stashed_weights_.assign(weights.begin(), weights.end());
  current_ = 1 - current_;
}

std::size_t StageWorker::memory_bytes() const {
  std::size_t bytes = capacity_bytes(below_, above_, below_change_, above_change_, sums_[0], sums_[1], gradient_,
                                     stashed_weights_);
  for (const Pass& pass : passes_) bytes += pass.model->memory_bytes();
  return bytes;
}

}  // namespace rumor
