// A small GPT for tests.
#pragma once

#include "models/families/model.h"

namespace rumor::models::test {

inline ModelConfig gpt_config(std::uint32_t vocabulary, std::uint32_t context, std::uint32_t layers,
                              std::uint32_t heads, std::uint32_t embedding) {
  ModelConfig config;
  config.family = "gpt";
  config.vocabulary = vocabulary;
  config.context = context;
  config.layers = layers;
  config.heads = heads;
  config.embedding = embedding;
  return config;
}

}  // namespace rumor::models::test
