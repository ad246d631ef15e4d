// Which test rows an evaluation takes, and that a model with a state carries it through them.
#include "models/evaluate/test_batches.h"

#include <boost/test/unit_test.hpp>
#include <set>

#include "models/evaluate/ensemble.h"
#include "models/evaluate/evaluation.h"
#include "tests/unit/models/families/lstm_config.h"

namespace rumor::models {
namespace {

constexpr std::uint32_t letters = 30;

// A text whose held-out part has so many rows, of which `evaluated` are test rows. Token t is a hash of t.
DataSet held_out_text(std::uint32_t rows, std::uint32_t context, std::uint32_t evaluated) {
  DataSet data;
  data.name = "held out";
  data.vocabulary = letters;
  data.context = context;
  data.test_windows = evaluated;
  const auto bytes = std::make_shared<std::vector<std::uint8_t>>();
  for (std::uint32_t i = 0; i <= rows * context; ++i)
    bytes->push_back(static_cast<std::uint8_t>((i * 2654435761u >> 16) % letters));
  data.test_tokens.append(bytes, *bytes, TokenArray::Width::byte);
  return data;
}

std::unique_ptr<Model> small_lstm(std::uint32_t context) {
  return make_model(test::lstm_config(letters, context, 8, {16, 16})).value();
}

// Far from zero, so that a state says much.
std::vector<float> far_weights(const Model& model, std::uint64_t seed) {
  std::vector<float> weights = to_floats(initial_weights(model, seed, 24), 24);
  for (float& weight : weights) weight *= 6;
  return weights;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(test_batches)

BOOST_AUTO_TEST_CASE(stretches_are_disjoint_even_and_the_whole_text) {
  for (const auto& [held, rows] : {std::pair{1u, 1u}, {63u, 63u}, {64u, 64u}, {1000u, 1000u}, {1000u, 130u},
                                   {8191u, 1024u}, {200u, 127u}, {200u, 129u}}) {
    const DataSet data = held_out_text(held, 1, rows);
    const std::vector<RowStretch> lanes = test_stretches(data, rows);
    BOOST_TEST(lanes.size() == std::max(1u, rows / stretch_rows));
    std::uint32_t all = 0, end = 0;
    for (const RowStretch& lane : lanes) {
      BOOST_TEST(lane.first >= end);
      BOOST_TEST((lane.rows <= lanes.front().rows && lane.rows + 1 >= lanes.front().rows));
      end = lane.first + lane.rows;
      all += lane.rows;
    }
    BOOST_TEST(all == rows);
    BOOST_TEST(end <= held);
    if (lanes.size() > 1 && held > rows) BOOST_TEST(lanes.back().first > held / 2 - held / 4);
  }
}

BOOST_AUTO_TEST_CASE(each_row_comes_once_after_the_one_before_it) {
  const DataSet data = held_out_text(700, 1, 300);
  for (const std::uint32_t block : {1u, 3u, 64u}) {
    std::vector<std::uint32_t> at;
    std::size_t begun = 0, taken = 0;
    each_test_batch(data, 270, block, true, [&](const Batch& batch, bool begins) {
      BOOST_REQUIRE((begins ? batch.rows <= block : batch.rows <= at.size()));
      if (begins) at.assign(batch.rows, 0), begun += batch.rows;
      for (std::uint32_t row = 0; row < batch.rows; ++row) {  // the last token of a row is the first of the next
        if (!begins) BOOST_TEST(batch.tokens[row * 2] == at[row]);
        at[row] = batch.tokens[row * 2 + 1];
      }
      taken += batch.rows;
    });
    BOOST_TEST(taken == 270u);
    BOOST_TEST(begun == 4u);
  }
}

// Fewer rows than a stretch has: one lane, which is one long row.
BOOST_AUTO_TEST_CASE(a_state_is_carried_through_the_text) {
  const DataSet rows = held_out_text(12, 5, 12), whole = held_out_text(1, 60, 1);
  const auto model = small_lstm(5), long_one = small_lstm(60);
  const std::vector<float> weights = far_weights(*model, 3);
  const double carried = evaluate_on_test(*model, rows, weights, UINT32_MAX).loss;
  BOOST_TEST(std::abs(carried - evaluate_on_test(*long_one, whole, weights, UINT32_MAX).loss) < 1e-6);
  const double apart = evaluate_on_test(rows, UINT32_MAX, [&](const Batch& batch) {
                         return model->evaluate(weights, batch);
                       }).loss;
  BOOST_TEST(std::abs(carried - apart) > 1e-3);
}

// More lanes than a block takes, some of them longer than others; and the same again, since nothing is left over.
BOOST_AUTO_TEST_CASE(an_ensemble_carries_a_state_for_each) {
  const DataSet data = held_out_text(421, 300, 400);
  BOOST_TEST_REQUIRE(data.evaluation_block() < test_stretches(data, 400).size());
  const auto model = small_lstm(300);
  const std::vector<float> first = far_weights(*model, 3), second = far_weights(*model, 4);
  const std::span<const float> one[] = {first}, both[] = {first, second}, turned[] = {second, first};
  const double own = evaluate_on_test(*model, data, first, UINT32_MAX).loss;
  BOOST_TEST(std::abs(evaluate_ensemble(*model, data, one).loss - own) < 1e-5);
  BOOST_TEST(evaluate_on_test(*model, data, first, UINT32_MAX).loss == own);
  const double together = evaluate_ensemble(*model, data, both).loss;
  BOOST_TEST(std::abs(together - evaluate_ensemble(*model, data, turned).loss) < 1e-6);
  BOOST_TEST(together < own);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
