#include "gpu/models/gpt.h"

#include <algorithm>
#include <numeric>

#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::gpu {

Result<DeviceGpt> DeviceGpt::create(const Gpu& gpu, const models::ModelConfig& config, Precision precision,
                                    std::size_t logits_max) {
  Result<ParamLayout> layout = models::gpt_layout(config);
  if (!layout) return layout.error();
  Result<models::GptShape> shape = models::gpt_shape(*layout, config.heads);
  if (!shape) return shape.error();
  if (shape->vocabulary > 65'536)
    return Error{Errc::usage, str("a vocabulary of ", shape->vocabulary,
                                  " is not possible on a GPU, 65536 tokens are the most; use --device cpu")};
  if (shape->head_size() > static_cast<long>(head_size_max))
    return Error{Errc::usage, str("heads of ", shape->head_size(), " floats are not possible on a GPU, ", head_size_max,
                                  " are the most: raise model.heads, or use --device cpu")};
  return DeviceGpt(gpu, std::move(layout).value(), std::move(shape).value(), precision, logits_max);
}

DeviceGpt::DeviceGpt(const Gpu& gpu, ParamLayout layout, models::GptShape shape, Precision precision,
                     std::size_t logits_max)
    : gpu_(&gpu),
      layout_(std::move(layout)),
      shape_(std::move(shape)),
      products_(gpu, precision),
      bf16_(precision == Precision::bf16),
      logits_max_(logits_max),
      layers_(static_cast<std::size_t>(shape_.layers)) {}

// All arrays in memory_.
PlacedArrays DeviceGpt::arrays(std::size_t rows, std::size_t piece_rows) {
  const std::size_t d = rows * width(), heads = rows * static_cast<std::size_t>(shape_.heads);
  PlacedArrays all;
  for (float** one : {&embedded_, &change_}) all.add(*one, d);
  for (Numbers* one : {&normed_, &inner_}) all.add(*one, bf16_, d);
  if (bf16_) all.add(rounded_change_, true, d);
  all.add(wide_, bf16_, 4 * d);
  all.add(dot_, heads);
  all.add(row_loss_, rows);
  all.add(partial_, chunks_of(static_cast<std::uint32_t>(rows)) * 4 * width());
  all.add(logits_, bf16_, piece_rows * logits_stride());
  for (Layer& layer : layers_) {
    for (float** one : {&layer.middle, &layer.out}) all.add(*one, d);
    for (Numbers* one : {&layer.normed_1, &layer.looked, &layer.normed_2}) all.add(*one, bf16_, d);
    all.add(layer.qkv, bf16_, 3 * d);
    for (Numbers* one : {&layer.wide, &layer.activated}) all.add(*one, bf16_, 4 * d);
    for (float** one : {&layer.top, &layer.weight}) all.add(*one, heads);
    for (Norm* norm : {&layer.norm_1, &layer.norm_2})
      for (float** one : {&norm->mean, &norm->scale}) all.add(*one, rows);
  }
  for (float** one : {&norm_.mean, &norm_.scale}) all.add(*one, rows);
  return all;
}

Result<void> DeviceGpt::make_room(std::uint32_t batch) {
  if (batch <= batch_max_) return {};
  const std::size_t rows = std::size_t{batch} * context();
  const auto vocabulary = static_cast<std::size_t>(shape_.vocabulary);
  const std::size_t logits_max = bf16_ ? 2 * logits_max_ : logits_max_;
  const std::size_t piece_rows = std::min(rows, std::max<std::size_t>(logits_max / logits_stride(), 1));
  const std::size_t distinct = std::min(rows, vocabulary), pieces = (rows + piece_rows - 1) / piece_rows;
  for (Result<void> room :
       {token_.make_room(*gpu_, rows, "a batch"), target_.make_room(*gpu_, rows, "a batch"),
        row_.make_room(*gpu_, rows, "a batch"), distinct_.make_room(*gpu_, distinct, "a batch"),
        first_.make_room(*gpu_, distinct + 1, "a batch"), total_loss_.make_room(*gpu_, pieces, "a batch")})
    if (!room) return room;
  // This comes last: arrays move only once nothing can fail any more.
  if (auto room = arrays(rows, piece_rows).make_room(*gpu_, memory_, "activations"); !room) return room;
  batch_max_ = batch;
  piece_rows_ = static_cast<std::uint32_t>(piece_rows);
  return {};
}

// ---- forward ----

Result<void> DeviceGpt::send_tokens(const models::TokenBatch& batch) {
  batch_ = static_cast<std::uint32_t>(batch.batch);
  rows_ = static_cast<std::uint32_t>(batch.rows());
  if (auto room = make_room(batch_); !room) return room;
  std::vector<std::uint16_t> token(rows_), target(rows_);
  for (std::uint32_t row = 0; row < rows_; ++row) {
    token[row] = static_cast<std::uint16_t>(batch.token(row));  // of at most 65,536: create() sees to it
    target[row] = static_cast<std::uint16_t>(batch.target(row));
  }
  token_.write(token.data(), rows_);
  target_.write(target.data(), rows_);
  return {};
}

// Takes the parameters for the next pass.
Result<void> DeviceGpt::take(const DeviceArray<float>& params) {
  RUMOR_CHECK(params.size() >= layout_.params());
  params_ = params.data();
  if (!bf16_) return {};
  if (auto room = rounded_params_.make_room(*gpu_, layout_.params(), "rounded parameters"); !room) return room;
  gpu_->table().model.round(gpu_->device(), layout_.params(), params_, rounded_params_.data());
  return {};
}

// y = norm of x, or of x + more; that sum overwrites `more`.
void DeviceGpt::norm(const Norm& keeps, const float* x, float* more, std::uint32_t gain, std::uint32_t bias,
                     Numbers y) {
  const LayerNormArgs args{{rows_, width()}, x, more, more, params_ + gain, params_ + bias, y, keeps.mean, keeps.scale};
  gpu_->table().model.layer_norm(gpu_->device(), &args);
}

// Normalises the sum before layer i, and computes that sum in the same pass.
void DeviceGpt::norm_sum(std::size_t i, const Norm& keeps, std::uint32_t gain, std::uint32_t bias, Numbers y) {
  if (i == 0) return norm(keeps, embedded_, nullptr, gain, bias, y);
  norm(keeps, layers_[i - 1].middle, layers_[i - 1].out, gain, bias, y);
}

// y = x W + b. With `before`: it receives x W + b, and y = gelu(before).
void DeviceGpt::project(const Projected& p, Numbers y, Numbers before) {
  MatmulArgs args = product(rows_, p.out, p.in, p.x, factors(p.weight), y);
  args.bias = y.bf16 ? factors(p.bias) : params_ + p.bias;
  args.before = before;
  args.epilogue = before.at != nullptr ? Epilogue::bias_gelu : Epilogue::bias;
  products_.make(args);
}

AttentionArgs DeviceGpt::attention_of(const Layer& layer) const {
  const auto heads = static_cast<std::uint32_t>(shape_.heads), size = static_cast<std::uint32_t>(shape_.head_size());
  return {batch_, context(), heads, size, layer.qkv, layer.looked, layer.top, layer.weight};
}

void DeviceGpt::forward_layer(std::size_t i) {
  Layer& layer = layers_[i];
  const models::GptShape::Layer& at = shape_.layer[i];
  const std::uint32_t d = width();
  norm_sum(i, layer.norm_1, at.norm_1_gain, at.norm_1_bias, layer.normed_1);
  project({layer.normed_1, d, 3 * d, at.attention_weight, at.attention_bias}, layer.qkv, {});
  const AttentionArgs attention = attention_of(layer);
  gpu_->table().model.attention(gpu_->device(), &attention);
  project({layer.looked, d, d, at.output_weight, at.output_bias}, layer.middle, {});
  norm(layer.norm_2, sum_before(i), layer.middle, at.norm_2_gain, at.norm_2_bias, layer.normed_2);
  project({layer.normed_2, d, 4 * d, at.wide_weight, at.wide_bias}, layer.activated, layer.wide);
  project({layer.activated, 4 * d, d, at.narrow_weight, at.narrow_bias}, layer.out, {});
}

void DeviceGpt::forward() {
  const EmbedArgs args{rows_,         width(), context(), token_.data(), params_ + shape_.table,
                       params_ + shape_.position, embedded_};
  gpu_->table().model.embed(gpu_->device(), &args);
  for (std::size_t i = 0; i < layers_.size(); ++i) forward_layer(i);
  norm_sum(layers_.size(), norm_, shape_.norm_gain, shape_.norm_bias, normed_);
}

// Writes the sum of the losses of each piece to total_loss_. With `gradient`: computes the head's part of the table's
// gradient, and inner_ becomes d loss / d normed_.
void DeviceGpt::compare(float* gradient) {
  const std::uint32_t d = width(), vocabulary = static_cast<std::uint32_t>(shape_.vocabulary);
  const auto stride = static_cast<std::uint32_t>(logits_stride());
  const ConstNumbers table = factors(shape_.table);
  for (std::uint32_t first = 0; first < rows_; first += piece_rows_) {
    const std::uint32_t rows = std::min(piece_rows_, rows_ - first);
    const Numbers x = normed_.from(std::size_t{first} * d);
    MatmulArgs logits = product(rows, vocabulary, d, x, table, logits_);
    logits.b_turned = true;
    logits.y_stride = stride;
    products_.make(logits);
    const float share = gradient != nullptr ? 1.0f / static_cast<float>(all_rows_) : 0.0f;
    const CrossEntropyArgs entropy{
        {rows, vocabulary}, logits_,           target_.data() + first,
        share,              row_loss_ + first, total_loss_.data() + first / piece_rows_,
        stride};
    gpu_->table().model.cross_entropy(gpu_->device(), &entropy);
    if (gradient == nullptr) continue;
    MatmulArgs of_table = product(vocabulary, d, rows, logits_, x, gradient + shape_.table);
    of_table.a_turned = true;
    of_table.a_stride = stride;
    of_table.add = first > 0;
    products_.make(of_table);
    MatmulArgs of_x = product(rows, d, vocabulary, logits_, table, inner_.from(std::size_t{first} * d));
    of_x.a_stride = stride;
    products_.make(of_x);
  }
}

// Waits for all work that was begun.
Result<double> DeviceGpt::total_loss() {
  if (auto made = products_.outcome(); !made) return made.error();
  std::vector<double> pieces((rows_ + piece_rows_ - 1) / piece_rows_);
  if (auto read = total_loss_.read(pieces.data(), pieces.size()); !read) return read.error();
  return std::accumulate(pieces.begin(), pieces.end(), 0.0);
}

// ---- backward ----

// inner_ is the gradient of the norm's output; the gradient of x is added to change_.
void DeviceGpt::norm_back(const Norm& kept, const float* x, std::uint32_t gain, std::uint32_t bias, float* gradient) {
  Bf16* const rounded = static_cast<Bf16*>(rounded_change_.at);
  const LayerNormChange args{{rows_, width()}, x,       params_ + gain, kept.mean, kept.scale,      inner_,
                             change_,          rounded, partial_,       gradient + gain, gradient + bias};
  gpu_->table().model.layer_norm_backward(gpu_->device(), &args);
}

// With `before`, x was gelu(before), and x_change becomes the gradient of `before`.
void DeviceGpt::project_back(const Projected& p, Numbers before, ConstNumbers change, float* gradient,
                             Numbers x_change) {
  const ModelTable& model = gpu_->table().model;
  MatmulArgs of_weight = product(p.in, p.out, rows_, p.x, change, gradient + p.weight);
  of_weight.a_turned = true;
  products_.make(of_weight);
  model.column_sums(gpu_->device(), {rows_, p.out}, change, partial_, gradient + p.bias);
  MatmulArgs of_x = product(rows_, p.in, p.out, change, factors(p.weight), x_change);
  of_x.b_turned = true;
  of_x.before = before;
  of_x.epilogue = before.at != nullptr ? Epilogue::gelu_back : Epilogue::none;
  products_.make(of_x);
}

// change_: in, d loss / d the sum after this layer; out, d loss / d the sum before it.
void DeviceGpt::backward_layer(std::size_t i, float* gradient) {
  const Layer& layer = layers_[i];
  const models::GptShape::Layer& at = shape_.layer[i];
  const std::uint32_t d = width();
  project_back({layer.activated, 4 * d, d, at.narrow_weight, at.narrow_bias}, layer.wide, change(), gradient, wide_);
  project_back({layer.normed_2, d, 4 * d, at.wide_weight, at.wide_bias}, {}, wide_, gradient, inner_);
  norm_back(layer.norm_2, layer.middle, at.norm_2_gain, at.norm_2_bias, gradient);
  project_back({layer.looked, d, d, at.output_weight, at.output_bias}, {}, change(), gradient, inner_);
  const AttentionChange attention{attention_of(layer), inner_, dot_, wide_};
  gpu_->table().model.attention_backward(gpu_->device(), &attention);
  project_back({layer.normed_1, d, 3 * d, at.attention_weight, at.attention_bias}, {}, wide_, gradient, inner_);
  norm_back(layer.norm_1, sum_before(i), at.norm_1_gain, at.norm_1_bias, gradient);
}

// Groups the rows by token, ascending, so that no two threads add to one number. Tokens without rows fill the list up
// to its largest length, so that the work is the same for every batch of this size.
void DeviceGpt::send_rows_by_token(const models::TokenBatch& batch) {
  std::vector<std::uint32_t> row(rows_), first;
  std::iota(row.begin(), row.end(), 0u);
  std::stable_sort(row.begin(), row.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return batch.token(a) < batch.token(b); });
  std::vector<std::uint16_t> token;
  for (std::uint32_t at = 0; at < rows_; ++at) {
    if (at > 0 && batch.token(row[at]) == token.back()) continue;
    token.push_back(static_cast<std::uint16_t>(batch.token(row[at])));
    first.push_back(at);
  }
  token.resize(distinct_max(), token.back());
  first.resize(distinct_max() + 1, rows_);
  row_.write(row.data(), row.size());
  first_.write(first.data(), first.size());
  distinct_.write(token.data(), token.size());
}

void DeviceGpt::backward(float* gradient) {
  gpu_->table().fill(gpu_->device(), change_, 0, std::size_t{rows_} * width() * sizeof(float));
  norm_back(norm_, sum_before(layers_.size()), shape_.norm_gain, shape_.norm_bias, gradient);
  for (std::size_t i = layers_.size(); i-- > 0;) backward_layer(i, gradient);
  const EmbedChange args{rows_,         width(),          context(), change_, row_.data(), first_.data(),
                         distinct_.data(), distinct_max(), gradient + shape_.table, gradient + shape_.position};
  gpu_->table().model.embed_backward(gpu_->device(), &args);
}

// ---- whole ----

models::TokenBatch DeviceGpt::tokens_of(const models::Batch& batch) const {
  RUMOR_CHECK(batch.rows > 0);
  RUMOR_CHECK(batch.tokens.size() == std::size_t{batch.rows} * (context() + 1));
  RUMOR_CHECK(*std::max_element(batch.tokens.begin(), batch.tokens.end()) < shape_.vocabulary);
  return {batch.tokens.data(), batch.rows, shape_.context};
}

Result<void> DeviceGpt::send(const models::Batch& batch, std::uint32_t all_rows) {
  const models::TokenBatch tokens = tokens_of(batch);
  if (!batch.soft.probability.empty()) return no_soft_targets();
  if (auto sent = send_tokens(tokens); !sent) return sent;
  send_rows_by_token(tokens);
  all_rows_ = all_rows * context();
  return {};
}

Result<void> DeviceGpt::compute(const DeviceArray<float>& params, const DeviceArray<float>& gradient) {
  RUMOR_CHECK(gradient.size() >= layout_.params());
  if (auto taken = take(params); !taken) return taken;
  forward();
  compare(gradient.data());
  backward(gradient.data());
  return products_.outcome();
}

Result<float> DeviceGpt::loss() {
  const Result<double> total = total_loss();
  if (!total) return total.error();
  return static_cast<float>(*total / all_rows_);
}

Result<models::Evaluation> DeviceGpt::evaluate(const DeviceArray<float>& params, const models::Batch& batch) {
  const models::TokenBatch all = tokens_of(batch);
  if (auto taken = take(params); !taken) return taken.error();
  double loss = 0;
  constexpr long piece = 8;  // rows
  for (long row = 0; row < all.batch; row += piece) {
    const models::TokenBatch part{all.tokens + row * (all.context + 1), std::min(piece, all.batch - row), all.context};
    if (auto sent = send_tokens(part); !sent) return sent.error();
    forward();
    compare(nullptr);
    const Result<double> total = total_loss();
    if (!total) return total.error();
    loss += *total;
  }
  return models::Evaluation{loss / static_cast<double>(all.rows()), std::nullopt};
}

std::size_t DeviceGpt::memory_bytes() const {
  return device_bytes(memory_, rounded_params_, total_loss_, token_, target_, distinct_, row_, first_);
}

}  // namespace rumor::gpu
