#include "gpu/models/language_model.h"

#include <numeric>

#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::gpu {
namespace {

// Products compute tiles of 128 or 256 rows: pieces of so many waste none.
std::size_t whole_tiles(std::size_t rows) {
  return rows < 256 ? rows : rows / 256 * 256;
}

}  // namespace

Result<void> DeviceLanguageModel::check_possible(long vocabulary, long head_size, std::string_view remedy) {
  if (vocabulary > 65'536)
    return Error{Errc::usage, str("a vocabulary of ", vocabulary,
                                  " is not possible on a GPU, 65536 tokens are the most; use --device cpu")};
  if (head_size > static_cast<long>(head_size_max))
    return Error{Errc::usage, str("heads of ", head_size, " floats are not possible on a GPU, ", head_size_max,
                                  " are the most: ", remedy, ", or use --device cpu")};
  return {};
}

DeviceLanguageModel::DeviceLanguageModel(const Gpu& gpu, ParamLayout layout, Sizes sizes, Precision precision,
                                         std::size_t logits_max)
    : gpu_(&gpu),
      layout_(std::move(layout)),
      sizes_(sizes),
      products_(gpu, precision),
      bf16_(precision == Precision::bf16),
      logits_max_(logits_max) {}

// All arrays in memory_.
PlacedArrays DeviceLanguageModel::all_arrays(std::size_t rows, std::size_t piece_rows) {
  const std::size_t d = rows * width();
  PlacedArrays all;
  for (float** one : {&arrays_.embedded, &arrays_.change}) all.add(*one, d);
  for (Numbers* one : {&arrays_.normed, &arrays_.inner}) all.add(*one, bf16_, d);
  if (bf16_) all.add(arrays_.rounded_change, true, d);
  all.add(row_loss_, rows);
  all.add(logits_, bf16_, piece_rows * logits_stride());
  add_arrays(rows, all);
  return all;
}

Result<void> DeviceLanguageModel::make_room(std::uint32_t batch) {
  if (batch <= batch_max_) return {};
  const std::size_t rows = std::size_t{batch} * context();
  const std::size_t logits_max = bf16_ ? 2 * logits_max_ : logits_max_;
  const std::size_t piece_rows = std::min(rows, whole_tiles(std::max<std::size_t>(logits_max / logits_stride(), 1)));
  const std::size_t distinct = std::min(rows, std::size_t{sizes_.vocabulary});
  const std::size_t pieces = (rows + piece_rows - 1) / piece_rows;
  for (Result<void> room :
       {token_.make_room(*gpu_, rows, "a batch"), target_.make_room(*gpu_, rows, "a batch"),
        row_.make_room(*gpu_, rows, "a batch"), distinct_.make_room(*gpu_, distinct, "a batch"),
        first_.make_room(*gpu_, distinct + 1, "a batch"), total_loss_.make_room(*gpu_, pieces, "a batch")})
    if (!room) return room;
  // This comes last: arrays move only once nothing can fail any more.
  if (auto room = all_arrays(rows, piece_rows).make_room(*gpu_, memory_, "activations"); !room) return room;
  batch_max_ = batch;
  piece_rows_ = static_cast<std::uint32_t>(piece_rows);
  return {};
}

// ---- forward ----

Result<void> DeviceLanguageModel::send_tokens(const models::TokenBatch& batch) {
  batch_ = static_cast<std::uint32_t>(batch.batch);
  rows_ = static_cast<std::uint32_t>(batch.rows());
  if (auto room = make_room(batch_); !room) return room;
  std::vector<std::uint16_t> token(rows_), target(rows_);
  for (std::uint32_t row = 0; row < rows_; ++row) {
    token[row] = static_cast<std::uint16_t>(batch.token(row));  // of at most 65,536: check_possible() sees to it
    target[row] = static_cast<std::uint16_t>(batch.target(row));
  }
  token_.write(token.data(), rows_);
  target_.write(target.data(), rows_);
  return {};
}

// Takes the parameters for the next pass.
Result<void> DeviceLanguageModel::take(const DeviceArray<float>& params) {
  RUMOR_CHECK(params.size() >= layout_.params());
  params_ = params.data();
  if (!bf16_) return {};
  if (auto room = rounded_params_.make_room(*gpu_, layout_.params(), "rounded parameters"); !room) return room;
  slots().round(gpu_->device(), layout_.params(), params_, rounded_params_.data());
  return {};
}

void DeviceLanguageModel::forward() {
  const float* const position = sizes_.position ? params_ + *sizes_.position : nullptr;
  const EmbedArgs args{rows_,    width(),         context(), token_.data(), params_ + sizes_.table,
                       position, arrays_.embedded};
  slots().embed(gpu_->device(), &args);
  forward_layers();
}

// The vocabulary as products see it: rounded up, so that they run on their fast paths (cuBLAS's manual, "Tensor Core
// Usage": sizes that are multiples of 16 bytes), if as many parameters follow the head's table. Logits of rows behind
// the table are ignored, and their gradients are zeros. So products give nothing for these rows, and the zeros that
// they write behind the gradient of the table are overwritten by backward().
std::uint32_t DeviceLanguageModel::padded_vocabulary() const {
  const std::size_t end = sizes_.head + logits_stride() * width();
  return end <= layout_.params() ? static_cast<std::uint32_t>(logits_stride()) : sizes_.vocabulary;
}

// Writes the sum of the losses of each piece to total_loss_. With `gradient`: computes the head's part of its table's
// gradient, and `inner` becomes d loss / d normed.
void DeviceLanguageModel::compare(float* gradient) {
  const std::uint32_t d = width(), padded = padded_vocabulary();
  const auto stride = static_cast<std::uint32_t>(logits_stride());
  const ConstNumbers table = factors(sizes_.head);
  for (std::uint32_t first = 0; first < rows_; first += piece_rows_) {
    const std::uint32_t rows = std::min(piece_rows_, rows_ - first);
    const Numbers x = arrays_.normed.from(std::size_t{first} * d);
    MatmulArgs logits = product(rows, padded, d, x, table, logits_);
    logits.b_turned = true;
    logits.y_stride = stride;
    products_.make(logits);
    const float share = gradient != nullptr ? 1.0f / static_cast<float>(all_rows_) : 0.0f;
    const CrossEntropyArgs entropy{
        {rows, sizes_.vocabulary}, logits_,           target_.data() + first,
        share,                     row_loss_ + first, total_loss_.data() + first / piece_rows_,
        stride};
    slots().cross_entropy(gpu_->device(), &entropy);
    if (gradient == nullptr) continue;
    MatmulArgs of_table = product(padded, d, rows, logits_, x, gradient + sizes_.head);
    of_table.a_turned = true;
    of_table.a_stride = stride;
    of_table.add = first > 0;
    products_.make(of_table);
    MatmulArgs of_x = product(rows, d, padded, logits_, table, arrays_.inner.from(std::size_t{first} * d));
    of_x.a_stride = stride;
    products_.make(of_x);
  }
}

// Waits for all work that was begun.
Result<double> DeviceLanguageModel::total_loss() {
  if (auto made = products_.outcome(); !made) return made.error();
  std::vector<double> pieces((rows_ + piece_rows_ - 1) / piece_rows_);
  if (auto read = total_loss_.read(pieces.data(), pieces.size()); !read) return read.error();
  return std::accumulate(pieces.begin(), pieces.end(), 0.0);
}

// ---- backward ----

// Groups the rows by token, ascending, so that no two threads add to one number. Tokens without rows fill the list up
// to its largest length, so that the work is the same for every batch of this size.
void DeviceLanguageModel::send_rows_by_token(const models::TokenBatch& batch) {
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

void DeviceLanguageModel::backward(float* gradient) {
  gpu_->table().fill(gpu_->device(), arrays_.change, 0, std::size_t{rows_} * width() * sizeof(float));
  backward_layers(gradient);
  float* const table = gradient + sizes_.table;
  if (sizes_.table != sizes_.head)  // otherwise it has the head's part of the gradient
    gpu_->table().fill(gpu_->device(), table, 0, std::size_t{sizes_.vocabulary} * width() * sizeof(float));
  const EmbedChange args{rows_,
                         width(),
                         context(),
                         arrays_.change,
                         row_.data(),
                         first_.data(),
                         distinct_.data(),
                         distinct_max(),
                         table,
                         sizes_.position ? gradient + *sizes_.position : nullptr};
  slots().embed_backward(gpu_->device(), &args);
}

// ---- whole ----

models::TokenBatch DeviceLanguageModel::tokens_of(const models::Batch& batch) const {
  RUMOR_CHECK(batch.rows > 0);
  RUMOR_CHECK(batch.tokens.size() == std::size_t{batch.rows} * (context() + 1));
  RUMOR_CHECK(*std::max_element(batch.tokens.begin(), batch.tokens.end()) < sizes_.vocabulary);
  return {batch.tokens.data(), batch.rows, sizes_.context};
}

Result<void> DeviceLanguageModel::send(const models::Batch& batch, std::uint32_t all_rows) {
  const models::TokenBatch tokens = tokens_of(batch);
  if (!batch.soft.probability.empty()) return no_soft_targets();
  if (auto sent = send_tokens(tokens); !sent) return sent;
  send_rows_by_token(tokens);
  all_rows_ = all_rows * context();
  return {};
}

Result<void> DeviceLanguageModel::compute(const DeviceArray<float>& params, const DeviceArray<float>& gradient) {
  RUMOR_CHECK(gradient.size() >= layout_.params());
  if (auto taken = take(params); !taken) return taken;
  forward();
  compare(gradient.data());
  backward(gradient.data());
  return products_.outcome();
}

Result<float> DeviceLanguageModel::loss() {
  const Result<double> total = total_loss();
  if (!total) return total.error();
  return static_cast<float>(*total / all_rows_);
}

Result<models::Evaluation> DeviceLanguageModel::evaluate(const DeviceArray<float>& params, const models::Batch& batch) {
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

std::size_t DeviceLanguageModel::memory_bytes() const {
  return device_bytes(memory_, rounded_params_, total_loss_, token_, target_, distinct_, row_, first_);
}

}  // namespace rumor::gpu
