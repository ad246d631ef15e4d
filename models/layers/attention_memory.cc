#include "models/layers/attention_memory.h"

#include <algorithm>
#include <cmath>

#include "models/kernels/kernels.h"
#include "models/kernels/sequence_kernels.h"
#include "runtime/base/check.h"

namespace rumor::models {

AttentionMemory::AttentionMemory(Attention::Shape shape) : shape_(shape) {
  const auto floats = static_cast<std::size_t>(shape.context * shape.groups * shape.head_size);
  keys_.resize(floats);
  values_.resize(floats);
  looks_.resize(static_cast<std::size_t>(shape.context));
}

void AttentionMemory::keep(long place, const float* qkv) {
  const long wide = shape_.groups * shape_.head_size;
  const float* key = qkv + shape_.width();
  for (long c = 0; c < wide; ++c) keys_[static_cast<std::size_t>(c * shape_.context + place)] = key[c];
  std::copy_n(key + wide, wide, values_.data() + place * wide);
}

void AttentionMemory::look(long place, const float* qkv, float* y) {
  RUMOR_CHECK(place < shape_.context);
  keep(place, qkv);
  const KernelTable& k = kernels();
  const long size = shape_.head_size, wide = shape_.groups * size;
  const float scale = 1 / std::sqrt(static_cast<float>(size));
  for (long head = 0; head < shape_.heads; ++head) {
    const long group = head / shape_.group_heads();
    float *out = y + head * size, top, weight;
    k.matmul(1, place + 1, size, {qkv + head * size, size, 1}, keys_.data() + group * size * shape_.context,
             shape_.context, looks_.data(), shape_.context, Start::zero);
    k.sequence->causal_exponentials(1, place, place + 1, scale, looks_.data(), shape_.context, &top, &weight);
    k.matmul(1, size, place + 1, {looks_.data(), shape_.context, 1}, values_.data() + group * size, wide, out, size,
             Start::zero);
    k.sequence->scale_rows(1, size, &weight, out, size);
  }
}

}  // namespace rumor::models
