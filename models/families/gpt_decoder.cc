#include "models/families/gpt_decoder.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/kernels/kernels.h"
#include "models/kernels/portable_math.h"
#include "models/kernels/sequence_kernels.h"
#include "runtime/base/check.h"

namespace rumor::models {

GptDecoder::GptDecoder(GptShape shape, std::span<const float> params)
    : shape_(std::move(shape)), params_(params.data()), memory_(static_cast<std::size_t>(shape_.layers)) {
  const auto width = static_cast<std::size_t>(shape_.width),
             context = static_cast<std::size_t>(shape_.context);
  for (Memory& memory : memory_) {
    memory.keys.resize(context * width);
    memory.values.resize(context * width);
  }
  sum_.resize(width);
  normed_.resize(width);
  qkv_.resize(3 * width);
  looks_.resize(context);
  looked_.resize(width);
  wide_.resize(4 * width);
  logits_.resize(static_cast<std::size_t>(shape_.vocabulary));
}

void GptDecoder::project(long in, long out, const float* x, std::uint32_t weight, std::uint32_t bias,
                         const float* residual, float* y) const {
  const KernelTable& k = kernels();
  k.sequence->add_row(1, out, residual, params_ + bias, y);
  k.matmul(1, out, in, {x, in, 1}, params_ + weight, out, y, out, Start::output);
}

// -> normed_
void GptDecoder::norm(const float* x, std::uint32_t gain, std::uint32_t bias) {
  float mean, scale;
  kernels().sequence->layer_norm(1, shape_.width, LayerNorm::epsilon, x, params_ + gain, params_ + bias,
                                 normed_.data(), &mean, &scale);
}

// qkv_ -> looked_
void GptDecoder::attend(const Memory& memory, long place) {
  const KernelTable& k = kernels();
  const long size = shape_.head_size(), width = shape_.width;
  const float scale = 1 / std::sqrt(static_cast<float>(size));
  for (long head = 0; head < shape_.heads; ++head) {
    const float* keys = memory.keys.data() + head * size * shape_.context;
    float *out = looked_.data() + head * size, top, weight;
    k.matmul(1, place + 1, size, {qkv_.data() + head * size, size, 1}, keys, shape_.context, looks_.data(),
             shape_.context, Start::zero);
    k.sequence->causal_exponentials(1, place, place + 1, scale, looks_.data(), shape_.context, &top, &weight);
    k.matmul(1, size, place + 1, {looks_.data(), shape_.context, 1}, memory.values.data() + head * size,
             width, out, width, Start::zero);
    k.sequence->scale_rows(1, size, &weight, out, width);
  }
}

void GptDecoder::advance(Token token) {
  const long place = static_cast<long>(tokens_.size()), d = shape_.width;
  const SequenceKernels& k = *kernels().sequence;
  float* sum = sum_.data();
  k.add(d, params_ + shape_.table + token * d, params_ + shape_.position + place * d, sum);
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    const GptShape::Layer& at = shape_.layer[i];
    Memory& memory = memory_[i];
    norm(sum, at.norm_1_gain, at.norm_1_bias);
    project(d, 3 * d, normed_.data(), at.attention_weight, at.attention_bias, nullptr, qkv_.data());
    for (long c = 0; c < d; ++c)
      memory.keys[static_cast<std::size_t>(c * shape_.context + place)] =
          qkv_[static_cast<std::size_t>(d + c)];
    std::copy_n(qkv_.data() + 2 * d, d, memory.values.data() + place * d);
    attend(memory, place);
    project(d, d, looked_.data(), at.output_weight, at.output_bias, sum, sum);
    norm(sum, at.norm_2_gain, at.norm_2_bias);
    project(d, 4 * d, normed_.data(), at.wide_weight, at.wide_bias, nullptr, wide_.data());
    k.gelu(4 * d, wide_.data(), wide_.data());
    project(4 * d, d, wide_.data(), at.narrow_weight, at.narrow_bias, sum, sum);
  }
  tokens_.push_back(token);
}

std::span<const float> GptDecoder::read(Token token) {
  RUMOR_CHECK(token < shape_.vocabulary);
  if (static_cast<long>(tokens_.size()) == shape_.context) {
    const std::vector<Token> newer(tokens_.end() - shape_.context / 2, tokens_.end());
    tokens_.clear();
    for (const Token old : newer) advance(old);
  }
  advance(token);
  norm(sum_.data(), shape_.norm_gain, shape_.norm_bias);
  kernels().matmul(shape_.vocabulary, 1, shape_.width, {params_ + shape_.table, shape_.width, 1},
                   normed_.data(), 1, logits_.data(), 1, Start::zero);
  return logits_;
}

Token draw_token(std::span<const float> logits, const SamplingRule& rule, Prng& prng) {
  RUMOR_CHECK(!logits.empty());
  const auto top = std::max_element(logits.begin(), logits.end());
  if (rule.temperature == 0) return static_cast<Token>(top - logits.begin());
  std::vector<Token> order(logits.size());
  std::iota(order.begin(), order.end(), Token{0});
  const auto likelier = [&](Token a, Token b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
  };
  const std::size_t count = rule.top_k == 0 ? logits.size() : std::min<std::size_t>(rule.top_k, logits.size());
  if (count < logits.size())
    std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count) - 1, order.end(), likelier);
  std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count));  // equal everywhere
  std::vector<double> sums(count);
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i)
    sums[i] = sum +=
        portable_exp((static_cast<double>(logits[order[i]]) - static_cast<double>(*top)) / rule.temperature);
  const double drawn = static_cast<double>(prng.next() >> 11) * 0x1p-53 * sum;
  const auto at = std::upper_bound(sums.begin(), sums.end() - 1, drawn) - sums.begin();
  return order[static_cast<std::size_t>(at)];
}

}  // namespace rumor::models
