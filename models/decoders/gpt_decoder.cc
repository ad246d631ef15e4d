#include "models/decoders/gpt_decoder.h"

#include <algorithm>
#include <cmath>

#include "models/kernels/kernels.h"
#include "models/kernels/sequence_kernels.h"
#include "runtime/base/check.h"

namespace rumor::models {

GptDecoder::GptDecoder(GptShape shape, std::span<const float> params)
    : ContextDecoder(shape.context, shape.vocabulary),
      shape_(std::move(shape)),
      params_(params.data()),
      memory_(shape_.layer.size(), AttentionMemory({1, shape_.context, shape_.heads, shape_.head_size()})) {
  const auto width = static_cast<std::size_t>(shape_.width);
  sum_.resize(width);
  normed_.resize(width);
  qkv_.resize(3 * width);
  looked_.resize(width);
  wide_.resize(4 * width);
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

void GptDecoder::advance(Token token, long place) {
  const long d = shape_.width;
  const SequenceKernels& k = *kernels().sequence;
  float* sum = sum_.data();
  k.add(d, params_ + shape_.table + token * d, params_ + shape_.position + place * d, sum);
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    const GptShape::Layer& at = shape_.layer[i];
    norm(sum, at.norm_1_gain, at.norm_1_bias);
    project(d, 3 * d, normed_.data(), at.attention_weight, at.attention_bias, nullptr, qkv_.data());
    memory_[i].look(place, qkv_.data(), looked_.data());
    project(d, d, looked_.data(), at.output_weight, at.output_bias, sum, sum);
    norm(sum, at.norm_2_gain, at.norm_2_bias);
    project(d, 4 * d, normed_.data(), at.wide_weight, at.wide_bias, nullptr, wide_.data());
    k.gelu(4 * d, wide_.data(), wide_.data());
    project(4 * d, d, wide_.data(), at.narrow_weight, at.narrow_bias, sum, sum);
  }
}

void GptDecoder::predict(float* logits) {
  norm(sum_.data(), shape_.norm_gain, shape_.norm_bias);
  kernels().matmul(shape_.vocabulary, 1, shape_.width, {params_ + shape_.head, shape_.width, 1},
                   normed_.data(), 1, logits, 1, Start::zero);
}

}  // namespace rumor::models
