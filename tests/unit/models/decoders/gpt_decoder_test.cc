// Token after token: what the decoder predicts is what the model does, also past a full context; how tokens
// are drawn.
#include "models/decoders/gpt_decoder.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "runtime/base/kernel_choice.h"
#include "tests/unit/models/families/gpt_support.h"

namespace rumor::models {
namespace {

using namespace test;

ModelConfig small_config() {
  ModelConfig config;
  config.family = "gpt";
  config.vocabulary = 23;
  config.context = 10;
  config.layers = 2;
  config.heads = 3;
  config.embedding = 12;
  return config;
}

ModelConfig untied_config() {
  ModelConfig config = small_config();
  config.tied_head = false;
  return config;
}

struct Small {
  ModelConfig config;
  ParamLayout layout = std::move(gpt_layout(config)).value();
  GptShape shape = std::move(gpt_shape(layout, 3)).value();
  std::vector<float> params;
  explicit Small(const ModelConfig& of = small_config()) : config(of) {
    Prng prng(4);
    params = draw(prng, layout.params(), 0.5);
  }
};

double loss_of(std::span<const float> logits, Token target) {
  double sum = 0;
  for (const float z : logits) sum += std::exp(static_cast<double>(z - logits[target]));
  return std::log(sum);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(gpt_decoder)

BOOST_AUTO_TEST_CASE(it_predicts_what_the_model_does) {
  for (const ModelConfig& config : {small_config(), untied_config()}) {
    const Small small(config);
    const auto model = std::move(make_model(config)).value();
    Prng prng(5);
    std::vector<Token> tokens(11);
    for (Token& token : tokens) token = static_cast<Token>(prng.below(23));
    for (const KernelTable* table : kernel_variants()) {
      BOOST_REQUIRE(choose_kernels(table->name).ok());
      GptDecoder decoder(small.shape, small.params);
      double loss = 0;
      for (std::size_t i = 0; i < 10; ++i) loss += loss_of(decoder.read(tokens[i]), tokens[i + 1]);
      Batch batch;
      batch.tokens = tokens;
      batch.rows = 1;
      BOOST_TEST(std::abs(loss / 10 - model->evaluate(small.params, batch).loss) < 1e-6);
    }
  }
  BOOST_REQUIRE(choose_kernels("").ok());
}

// When the eleventh token comes, the newer five of ten are read again.
BOOST_AUTO_TEST_CASE(a_full_context_keeps_its_newer_half) {
  const Small small;
  GptDecoder whole(small.shape, small.params), fresh(small.shape, small.params);
  std::vector<float> whole_logits, fresh_logits;
  for (Token token = 0; token <= 10; ++token) {
    const std::span<const float> logits = whole.read(token);
    whole_logits.assign(logits.begin(), logits.end());
  }
  for (Token token = 5; token <= 10; ++token) {
    const std::span<const float> logits = fresh.read(token);
    fresh_logits.assign(logits.begin(), logits.end());
  }
  BOOST_TEST((whole_logits == fresh_logits));
}

BOOST_AUTO_TEST_CASE(tokens_are_drawn_by_their_likelihood) {
  const std::vector<float> logits = {0.0f, 2.0f, -1.0f, 2.0f, 1.0f};
  Prng prng(6);
  BOOST_TEST(draw_token(logits, {0, 0}, prng) == 1);  // the first of two equals
  BOOST_TEST(draw_token(logits, {1, 1}, prng) == 1);
  int counts[5] = {};
  for (int i = 0; i < 20'000; ++i) ++counts[draw_token(logits, {0.5, 3}, prng)];
  BOOST_TEST(counts[0] == 0);
  BOOST_TEST(counts[2] == 0);
  const double share = 1 / (2 + std::exp(-2.0));
  BOOST_TEST(std::abs(counts[1] / 20'000.0 - share) < 0.015);
  BOOST_TEST(std::abs(counts[3] / 20'000.0 - share) < 0.015);
  BOOST_TEST(std::abs(counts[4] / 20'000.0 - share * std::exp(-2.0)) < 0.01);
  Prng again(6), twin(6);
  for (int i = 0; i < 20; ++i)
    BOOST_TEST(draw_token(logits, {1, 0}, again) == draw_token(logits, {1, 0}, twin));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
