// Checks that every family of language models must pass. They use Boost.Test's macros.
#pragma once

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <vector>

#include "models/families/model.h"
#include "runtime/base/kernel_choice.h"
#include "tests/unit/models/families/gpt_support.h"
#include "tests/unit/threads.h"

namespace rumor::models::test {

inline std::vector<float> initial_of(const Model& model) {
  std::vector<float> params;
  for (const std::int32_t w : initial_weights(model, 1, 24))
    params.push_back(static_cast<float>(w) / (1 << 24));
  return params;
}

inline std::vector<Token> draw_tokens(Prng& prng, std::uint32_t vocabulary, std::size_t count) {
  std::vector<Token> tokens(count);
  for (Token& token : tokens) token = static_cast<Token>(prng.below(vocabulary));
  return tokens;
}

inline Batch batch_of(const std::vector<Token>& tokens, std::uint32_t rows) {
  Batch batch;
  batch.tokens = tokens;
  batch.rows = rows;
  return batch;
}

// The gradient against differences of the loss along drawn directions.
inline void check_slopes(const ModelConfig& config, std::uint32_t rows) {
  const auto model = std::move(make_model(config)).value();
  Prng prng(3);
  const std::vector<Token> tokens = draw_tokens(prng, config.vocabulary, rows * std::size_t{config.context + 1});
  const std::vector<float> params = draw(prng, model->layout().params(), 0.3);
  std::vector<float> gradient(params.size()), moved(params.size());
  model->loss_and_gradient(params, batch_of(tokens, rows), gradient);
  for (int direction = 0; direction < 5; ++direction) {
    const std::vector<float> way = draw(prng, model->layout().params());
    double loss[2];
    for (int side = 0; side < 2; ++side) {
      for (std::size_t i = 0; i < params.size(); ++i)
        moved[i] = params[i] + (side == 0 ? 1e-3f : -1e-3f) * way[i];
      loss[side] = model->evaluate(moved, batch_of(tokens, rows)).loss;
    }
    const double slope = (loss[0] - loss[1]) / 2e-3, expected = dot(gradient, way);
    BOOST_TEST(std::abs(slope - expected) < 2e-3 * (1 + std::abs(expected)), slope << " != " << expected);
  }
}

// Loss and gradient have the same bits with all kernels, for any number of threads, and whatever was computed before.
inline void check_bits(const ModelConfig& config) {
  const auto used = std::move(make_model(config)).value();
  const std::vector<float> params = initial_of(*used);
  for (const std::uint32_t rows : {2u, 11u, 1u}) {
    Prng prng(rows);
    const std::vector<Token> tokens = draw_tokens(prng, config.vocabulary, rows * std::size_t{config.context + 1});
    const Batch batch = batch_of(tokens, rows);
    std::vector<float> expected(params.size()), gradient(params.size());
    BOOST_REQUIRE(choose_kernels("portable").ok());
    const float loss = std::move(make_model(config)).value()->loss_and_gradient(params, batch, expected);
    for (const KernelTable* table : kernel_variants()) {
      BOOST_REQUIRE(choose_kernels(table->name).ok());
      for (const unsigned width : {1u, 2u, 5u}) {
        rumor::test::Backwards backwards(width);
        used->set_parallel(&backwards);
        BOOST_TEST(used->loss_and_gradient(params, batch, gradient) == loss);
        BOOST_TEST((gradient == expected), table->name << " rows " << rows << " in " << width << " pieces");
      }
      used->set_parallel(nullptr);
      BOOST_TEST(std::abs(used->evaluate(params, batch).loss - static_cast<double>(loss)) < 1e-6);
    }
  }
  BOOST_REQUIRE(choose_kernels("").ok());
}

}  // namespace rumor::models::test
