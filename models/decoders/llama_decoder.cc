#include "models/decoders/llama_decoder.h"

#include <algorithm>
#include <utility>

#include "models/kernels/kernels.h"
#include "models/kernels/sequence_kernels.h"
#include "runtime/base/check.h"

namespace rumor::models {

LlamaDecoder::LlamaDecoder(LlamaShape shape, std::span<const float> params)
    : ContextDecoder(shape.context, shape.vocabulary),
      shape_(std::move(shape)),
      params_(params.data()),
      rotary_(shape_.context, shape_.head_size, shape_.rope_base, shape_.scaling),
      memory_(shape_.layer.size(), AttentionMemory(shape_.attention(1))) {
  const auto floats = [](long count) { return static_cast<std::size_t>(count); };
  const Attention::Shape attention = shape_.attention(1);
  for (std::vector<float>* one : {&sum_, &normed_}) one->resize(floats(shape_.width));
  for (std::vector<float>* one : {&gate_, &up_}) one->resize(floats(shape_.feed_forward));
  qkv_.resize(floats(attention.row()));
  looked_.resize(floats(attention.width()));
}

// `start`: [out], added; null: nothing. Rows of the weights are the products' rows, so none is transposed.
void LlamaDecoder::project(long in, long out, const float* x, std::uint32_t weight, const float* start,
                           float* y) const {
  if (start && start != y) std::copy_n(start, out, y);
  kernels().matmul(out, 1, in, {params_ + weight, in, 1}, x, 1, y, 1, start ? Start::output : Start::zero);
}

void LlamaDecoder::norm(const float* x, std::uint32_t gain) {
  float scale;
  kernels().sequence->rms_norm(1, shape_.width, shape_.epsilon, x, params_ + gain, normed_.data(), &scale);
}

// normed_ -> qkv_
void LlamaDecoder::project_qkv(const LlamaShape::Layer& at) {
  const long queries = shape_.heads * shape_.head_size, keys = shape_.groups * shape_.head_size;
  const auto bias = [&](std::uint32_t offset) { return shape_.qkv_bias ? params_ + offset : nullptr; };
  project(shape_.width, queries, normed_.data(), at.query, bias(at.query_bias), qkv_.data());
  project(shape_.width, keys, normed_.data(), at.key, bias(at.key_bias), qkv_.data() + queries);
  project(shape_.width, keys, normed_.data(), at.value, bias(at.value_bias), qkv_.data() + queries + keys);
}

void LlamaDecoder::advance(Token token, long place) {
  const long d = shape_.width, f = shape_.feed_forward;
  const Attention::Shape attention = shape_.attention(1);
  float* sum = sum_.data();
  std::copy_n(params_ + shape_.table + token * d, d, sum);
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    const LlamaShape::Layer& at = shape_.layer[i];
    norm(sum, at.attention_gain);
    project_qkv(at);
    rotary_.forward(nullptr, 1, shape_.heads + shape_.groups, qkv_.data(), attention.row(), place);
    memory_[i].look(place, qkv_.data(), looked_.data());
    project(attention.width(), d, looked_.data(), at.output, sum, sum);
    norm(sum, at.feed_forward_gain);
    project(d, f, normed_.data(), at.gate, nullptr, gate_.data());
    project(d, f, normed_.data(), at.up, nullptr, up_.data());
    kernels().sequence->swiglu(f, gate_.data(), up_.data(), gate_.data());
    project(f, d, gate_.data(), at.down, sum, sum);
  }
}

void LlamaDecoder::predict(float* logits) {
  norm(sum_.data(), shape_.gain);
  project(shape_.width, shape_.vocabulary, normed_.data(), shape_.head, nullptr, logits);
}

}  // namespace rumor::models
