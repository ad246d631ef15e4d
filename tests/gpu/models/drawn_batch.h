// A small model of each family, and random batches for any of them.
#pragma once

#include <cstdint>
#include <vector>

#include "models/families/model.h"
#include "tests/gpu/kernels/numbers.h"
#include "tests/unit/models/families/gpt_config.h"

namespace rumor::gpu {

inline models::ModelConfig small_llama(std::uint32_t vocabulary, std::uint32_t context, std::uint32_t heads,
                                       std::uint32_t groups, std::uint32_t embedding) {
  models::ModelConfig config = models::test::gpt_config(vocabulary, context, 1, heads, embedding);
  config.family = "llama";
  config.kv_heads = groups;
  return config;
}

// An MLP first, a GPT last.
inline std::vector<models::ModelConfig> test_models() {
  models::ModelConfig mlp;
  mlp.hidden = {9};
  mlp.inputs = 6;
  mlp.classes = 5;
  models::ModelConfig cnn;
  cnn.family = "cnn";
  cnn.stage_channels = {4, 4};
  cnn.blocks = 1;
  cnn.groups = 2;
  cnn.hidden = {};
  cnn.height = 5;
  cnn.width = 4;
  cnn.channels = 2;
  cnn.inputs = 40;
  cnn.classes = 5;
  return {mlp, cnn, models::test::gpt_config(37, 9, 1, 2, 8)};
}

struct DrawnBatch {
  Floats x;
  std::vector<std::uint8_t> label;
  std::vector<models::Token> tokens;
  models::Batch batch;

  DrawnBatch(Prng& prng, std::uint32_t rows, const models::ModelConfig& config) {
    batch.rows = rows;
    if (config.vocabulary > 0) {
      tokens.resize(std::size_t{rows} * (config.context + 1));
      for (models::Token& one : tokens) one = static_cast<models::Token>(prng.below(config.vocabulary));
      batch.tokens = tokens;
      return;
    }
    x = drawn(prng, std::size_t{rows} * config.inputs);
    label.resize(rows);
    for (std::uint8_t& one : label) one = static_cast<std::uint8_t>(prng.below(config.classes));
    batch.x = x;
    batch.label = label;
  }
};

}  // namespace rumor::gpu
