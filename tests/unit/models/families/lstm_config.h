// A small LSTM for tests.
#pragma once

#include "models/families/model.h"

namespace rumor::models::test {

inline ModelConfig lstm_config(std::uint32_t vocabulary, std::uint32_t context, std::uint32_t embedding,
                               std::vector<std::uint32_t> hidden) {
  ModelConfig config;
  config.family = "lstm";
  config.vocabulary = vocabulary;
  config.context = context;
  config.embedding = embedding;
  config.hidden = std::move(hidden);
  return config;
}

}  // namespace rumor::models::test
