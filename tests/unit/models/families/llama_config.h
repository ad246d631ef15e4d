// Small Llamas for tests.
#pragma once

#include "models/families/model.h"

namespace rumor::models::test {

inline ModelConfig llama_config(std::uint32_t vocabulary, std::uint32_t context, std::uint32_t heads,
                                std::uint32_t groups, std::uint32_t embedding) {
  ModelConfig config;
  config.family = "llama";
  config.vocabulary = vocabulary;
  config.context = context;
  config.layers = 2;
  config.heads = heads;
  config.kv_heads = groups;
  config.embedding = embedding;
  return config;
}

// With all that the family can have, as golden_llama.py.
inline ModelConfig golden_llama() {
  ModelConfig config = llama_config(11, 6, 4, 2, 8);
  config.head_size = 4;
  config.feed_forward = 12;
  config.rope_base = 100;
  config.rope_scaling = {RotaryScaling::Kind::llama3, 8, 1, 4, 16};
  config.norm_epsilon = 1e-6;
  config.tied_head = false;
  config.qkv_bias = true;
  return config;
}

}  // namespace rumor::models::test
