// Models in parts: a chain of parts gives the bits of the whole model.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>

#include "tests/unit/models/families/gpt_config.h"
#include "tests/unit/models/families/language_checks.h"
#include "tests/unit/models/families/lstm_config.h"

namespace rumor::models {
namespace {

using PartCut = std::vector<std::uint32_t>;

std::unique_ptr<Model> made_part(const ModelConfig& config) {
  return std::move(make_model(config)).value();
}

// Rows with labels, or of tokens.
struct PartRows {
  std::vector<float> x;
  std::vector<std::uint8_t> label;
  std::vector<Token> tokens;
  Batch batch;

  PartRows(const ModelConfig& config, std::uint32_t rows) {
    Prng prng(rows);
    batch.rows = rows;
    if (config.vocabulary > 0) {
      tokens = test::draw_tokens(prng, config.vocabulary, rows * std::size_t{config.context + 1});
      batch.tokens = tokens;
      return;
    }
    x = test::draw(prng, rows * std::size_t{config.inputs});
    for (std::uint32_t i = 0; i < rows; ++i)
      label.push_back(static_cast<std::uint8_t>(prng.below(config.classes)));
    batch.x = x;
    batch.label = label;
  }
};

// Zeros of different signs are equal floats, but not the same bits.
bool same_part_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// A stage with its own weights and what it exchanges with its neighbours.
struct PartStage {
  std::unique_ptr<Model> model;
  std::vector<float> params, gradient, below, below_change;
};

// The parts of a model, one after another.
class PartChain {
 public:
  PartChain(const ModelConfig& config, const PartCut& cut) {
    const auto parts = cut_model(config, static_cast<std::uint32_t>(cut.size()), cut).value();
    for (const UnitRange& units : parts) {
      ModelConfig part = config;
      part.units = units;
      PartStage stage{.model = made_part(part)};
      stage.params = test::initial_of(*stage.model);
      stage.gradient.assign(stage.params.size(), std::nanf(""));
      stages_.push_back(std::move(stage));
    }
  }

  std::vector<PartStage>& stages() { return stages_; }

  float step(const Batch& batch) {
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      PartStage& stage = stages_[i];
      std::vector<float> above(batch.rows * stage.model->border_floats().above, std::nanf(""));
      stage.model->forward(stage.params, batch_for(i, batch), stage.below, above);
      if (i + 1 < stages_.size()) stages_[i + 1].below = above;
    }
    float loss = 0;
    for (std::size_t i = stages_.size(); i-- > 0;) {
      PartStage& stage = stages_[i];
      stage.below_change.assign(stage.below.size(), std::nanf(""));
      std::span<const float> above_change;
      if (i + 1 < stages_.size()) above_change = stages_[i + 1].below_change;
      loss += stage.model->backward(stage.params, batch_for(i, batch), stage.below, above_change,
                                    stage.gradient, stage.below_change);
    }
    return loss;
  }

 private:
  // The rows alone, except at the ends of the model.
  Batch batch_for(std::size_t stage, const Batch& batch) const {
    if (stage == 0 || stage + 1 == stages_.size()) return batch;
    return {.rows = batch.rows};
  }

  std::vector<PartStage> stages_;
};

// Activations take memory for the most rows so far, and those of a part no more than those of the whole model.
void check_memory(const Model& whole, PartChain& chain, std::uint32_t rows, std::size_t& before) {
  const std::size_t bytes = whole.memory_bytes();
  BOOST_TEST(bytes >= rows * sizeof(float));
  if (rows < 9)
    BOOST_TEST((before == 0 || bytes == before));
  else
    BOOST_TEST(bytes > before);
  for (const PartStage& stage : chain.stages()) BOOST_TEST(stage.model->memory_bytes() <= bytes);
  before = bytes;
}

// Weights, hidden matrices, loss and gradients of the parts are those of the whole model.
void check_parts(const ModelConfig& config, const PartCut& cut) {
  const auto whole = made_part(config);
  const std::vector<float> params = test::initial_of(*whole);
  PartChain chain(config, cut);
  std::size_t memory = 0;
  for (const std::uint32_t rows : {3u, 1u, 9u}) {
    const PartRows drawn(config, rows);
    std::vector<float> gradient(params.size());
    const float loss = whole->loss_and_gradient(params, drawn.batch, gradient);
    BOOST_TEST(std::isfinite(loss));
    BOOST_TEST(chain.step(drawn.batch) == loss);
    check_memory(*whole, chain, rows, memory);
    std::size_t tensors = 0;
    for (const PartStage& stage : chain.stages()) {
      for (const TensorInfo& tensor : stage.model->layout().tensors()) {
        const TensorInfo& same = whole->layout().tensors()[tensors++];
        BOOST_TEST_REQUIRE(same.name == tensor.name);
        BOOST_TEST_REQUIRE(same.size == tensor.size);
        const auto of_whole = [&](std::span<const float> all) { return all.subspan(same.offset, same.size); };
        const auto of_part = [&](std::span<const float> all) {
          return all.subspan(tensor.offset, tensor.size);
        };
        BOOST_TEST(same_part_bits(of_whole(params), of_part(stage.params)), tensor.name);
        BOOST_TEST(same_part_bits(of_whole(gradient), of_part(stage.gradient)),
                   tensor.name << " of " << rows << " rows");
        BOOST_TEST(whole->hidden_matrices(same) == stage.model->hidden_matrices(tensor), tensor.name);
      }
    }
    BOOST_TEST(tensors == whole->layout().tensors().size());
  }
}

ModelConfig mlp_to_cut() {
  ModelConfig config;
  config.inputs = 50;
  config.classes = 7;
  config.hidden = {33, 19, 24};
  return config;
}

ModelConfig cnn_to_cut(std::vector<std::uint32_t> channels, std::uint32_t blocks, std::uint32_t groups) {
  ModelConfig config;
  config.family = "cnn";
  config.channels = 3;
  config.height = 12;
  config.width = 10;
  config.inputs = 3 * 12 * 10;
  config.classes = 5;
  config.stage_channels = std::move(channels);
  config.blocks = blocks;
  config.groups = groups;
  config.hidden = {20};
  return config;
}

ModelConfig gpt_to_cut() {
  ModelConfig config = test::gpt_config(61, 9, 4, 2, 16);
  config.tied_head = false;
  return config;
}

ModelConfig llama_to_cut(bool qkv_bias) {
  ModelConfig config = gpt_to_cut();
  config.family = "llama";
  config.qkv_bias = qkv_bias;
  return config;
}

std::string refused_cut(const ModelConfig& config, std::uint32_t stages, const PartCut& cut) {
  return cut_model(config, stages, cut).error().text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(parts)

BOOST_AUTO_TEST_CASE(parts_of_an_mlp_give_the_bits_of_the_whole) {
  for (const PartCut& cut :
       {PartCut{4}, PartCut{2, 2}, PartCut{1, 3}, PartCut{3, 1}, PartCut{1, 2, 1}, PartCut{1, 1, 1, 1}})
    check_parts(mlp_to_cut(), cut);
}

BOOST_AUTO_TEST_CASE(parts_of_a_plain_cnn_give_the_bits_of_the_whole) {
  for (const PartCut& cut :
       {PartCut{4}, PartCut{3, 1}, PartCut{1, 3}, PartCut{1, 2, 1}, PartCut{1, 1, 1, 1}}) {
    check_parts(cnn_to_cut({8, 16, 20}, 0, 4), cut);
    check_parts(cnn_to_cut({8, 16, 20}, 0, 0), cut);
  }
}

BOOST_AUTO_TEST_CASE(parts_of_a_residual_cnn_give_the_bits_of_the_whole) {
  for (const PartCut& cut :
       {PartCut{6}, PartCut{3, 3}, PartCut{1, 5}, PartCut{5, 1}, PartCut{1, 3, 2}, PartCut{2, 1, 1, 2}})
    check_parts(cnn_to_cut({8, 16}, 2, 4), cut);
}

BOOST_AUTO_TEST_CASE(parts_of_a_gpt_give_the_bits_of_the_whole) {
  for (const PartCut& cut :
       {PartCut{4}, PartCut{2, 2}, PartCut{1, 3}, PartCut{3, 1}, PartCut{1, 2, 1}, PartCut{1, 1, 1, 1}})
    check_parts(gpt_to_cut(), cut);
}

BOOST_AUTO_TEST_CASE(parts_of_a_llama_give_the_bits_of_the_whole) {
  for (const PartCut& cut :
       {PartCut{4}, PartCut{2, 2}, PartCut{1, 3}, PartCut{2, 1, 1}, PartCut{1, 1, 1, 1}}) {
    check_parts(llama_to_cut(false), cut);
    check_parts(llama_to_cut(true), cut);
  }
}

// Widths of 20 are padded to 32 between layers, and not at a border.
BOOST_AUTO_TEST_CASE(parts_of_an_lstm_give_the_bits_of_the_whole) {
  for (const PartCut& cut : {PartCut{3}, PartCut{1, 2}, PartCut{2, 1}, PartCut{1, 1, 1}})
    check_parts(test::lstm_config(61, 9, 12, {20, 20, 20}), cut);
}

// A part of an LSTM carries the state of its own layers from row to row.
BOOST_AUTO_TEST_CASE(parts_of_an_lstm_keep_the_states_of_their_layers) {
  const ModelConfig config = test::lstm_config(61, 9, 12, {20, 20});
  const auto whole = made_part(config);
  const std::vector<float> params = test::initial_of(*whole);
  std::vector<float> gradient(params.size()), all(2 * whole->state_floats()), of_part[2];
  PartChain chain(config, {1, 1});
  for (std::vector<float>& state : of_part) state.resize(all.size() / 2);
  for (int turn = 0; turn < 2; ++turn) {
    PartRows rows(config, 2);
    rows.batch.state = all;
    whole->loss_and_gradient(params, rows.batch, gradient);
    std::vector<float> border(2 * chain.stages()[0].model->border_floats().above), change(border.size());
    PartStage &lower = chain.stages()[0], &upper = chain.stages()[1];
    Batch below = rows.batch, above = rows.batch;
    below.state = of_part[0];
    above.state = of_part[1];
    lower.model->forward(lower.params, below, {}, border);
    upper.model->forward(upper.params, above, border, {});
    upper.model->backward(upper.params, above, border, {}, upper.gradient, change);
    lower.model->backward(lower.params, below, {}, change, lower.gradient, {});
    std::vector<float> joined = lower.gradient;
    joined.insert(joined.end(), upper.gradient.begin(), upper.gradient.end());
    BOOST_TEST(same_part_bits(joined, gradient), "turn " << turn);
  }
}

BOOST_AUTO_TEST_CASE(a_cut_is_even_unless_the_run_file_says_otherwise) {
  // The layers of each part, as text.
  const auto cut = [](const ModelConfig& config, std::uint32_t stages) {
    std::string found;
    const auto parts = cut_model(config, stages, {}).value();
    for (const UnitRange& part : parts) found += str(part.end - part.begin, " ");
    return found;
  };
  ModelConfig deep = gpt_to_cut();
  deep.layers = 12;
  deep.vocabulary = 2;
  BOOST_TEST(cut(deep, 4) == "3 3 3 3 ");
  BOOST_TEST(cut(deep, 5) == "2 3 3 2 2 ");  // the first one adds positions as well
  // A head that costs as much as two layers. The table of the embedding costs nothing.
  ModelConfig middle = deep;
  middle.units = {1, 2};
  const std::uint64_t layer = made_part(middle)->multiply_adds(1);
  deep.vocabulary = static_cast<std::uint32_t>(2 * layer / deep.context / deep.embedding);
  BOOST_TEST(cut(deep, 2) == "7 5 ");
  BOOST_TEST(cut(deep, 4) == "3 4 4 1 ");
  BOOST_TEST(cut(deep, 7) == "1 2 2 2 2 2 1 ");
  BOOST_TEST(unit_count(gpt_to_cut()).value() == 4u);
  BOOST_TEST(unit_count(mlp_to_cut()).value() == 4u);
  BOOST_TEST(unit_count(cnn_to_cut({8, 16}, 2, 4)).value() == 6u);
}

BOOST_AUTO_TEST_CASE(a_cut_that_does_not_fit_is_refused_by_name) {
  BOOST_TEST(
      refused_cut(gpt_to_cut(), 5, {}).starts_with("pipeline.stages = 5: this model can be cut into 1 to 4"));
  BOOST_TEST(refused_cut(gpt_to_cut(), 0, {}).starts_with("pipeline.stages = 0"));
  BOOST_TEST(refused_cut(gpt_to_cut(), 2, {1, 2, 1}).starts_with("pipeline.cut has 3 numbers for 2 stages"));
  BOOST_TEST(refused_cut(gpt_to_cut(), 2, {1, 2}).starts_with("pipeline.cut: its numbers add up to 3, but"));
  BOOST_TEST(refused_cut(gpt_to_cut(), 2, {4, 0}).starts_with("pipeline.cut: each stage needs"));
  ModelConfig tied = gpt_to_cut();
  tied.tied_head = true;
  BOOST_TEST(refused_cut(tied, 2, {}).ends_with("set model.tied_head = false"));
  BOOST_TEST(cut_model(tied, 1, {}).ok());
  ModelConfig beyond = mlp_to_cut();
  beyond.units = {3, 5};
  BOOST_TEST(make_model(beyond).error().text == "units 3 to 5 are no part of a model of 4 units");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
