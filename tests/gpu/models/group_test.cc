// Several GPUs together: sums and copies among them; a model split over 2 and 3 has the loss and the gradient of one,
// whatever the batch, and follows where parameters change; and what cannot be joined.
#include "gpu/device/group.h"

#include <boost/test/unit_test.hpp>
#include <numeric>

#include "gpu/models/split_model.h"
#include "tests/gpu/models/drawn_batch.h"
#include "tests/gpu/models/model_support.h"

using namespace rumor;
using namespace rumor::gpu;

BOOST_AUTO_TEST_SUITE(gpu_group)

namespace {

DeviceArray<float> on(const Gpu& gpu, const Floats& values) {
  auto array = DeviceArray<float>::create(gpu, values.size(), "a test").value();
  array.write(values.data(), values.size());
  return array;
}

Floats read(const DeviceArray<float>& array, std::size_t count) {
  Floats values(count);
  BOOST_TEST_REQUIRE(array.read(values.data(), count).ok());
  return values;
}

struct Outcome {
  float loss;
  Floats gradient;
};

// A model on a group, with parameters on its first GPU.
struct Split {
  std::unique_ptr<GpuGroup> gpus;
  SplitModel model;
  DeviceArray<float> params, gradient;

  Split(std::unique_ptr<GpuGroup> group, const models::ModelConfig& config, const Floats& start)
      : gpus(std::move(group)),
        model(SplitModel::create(*gpus, config, Precision::fp32).value()),
        params(on(gpus->first(), start)),
        gradient(on(gpus->first(), Floats(start.size(), 7.0f))) {
    BOOST_TEST_REQUIRE(model.follow(params).ok());
  }
  Outcome step(const models::Batch& batch) {
    const Result<float> loss = model.loss_and_gradient(params, batch, gradient);
    BOOST_TEST_REQUIRE(loss.ok());
    return {*loss, read(gradient, gradient.size())};
  }
  void put(const std::vector<std::uint32_t>& place, const Floats& value) {
    auto places = DeviceArray<std::uint32_t>::create(gpus->first(), place.size(), "a test").value();
    places.write(place.data(), place.size());
    const DeviceArray<float> values = on(gpus->first(), value);
    const auto count = static_cast<std::uint32_t>(place.size());
    gpus->first().table().put(gpus->first().device(), places.data(), values.data(), count, params.data());
    BOOST_TEST_REQUIRE(model.follow_at(places, count, params).ok());
  }
};

std::string why_not(std::initializer_list<int> ordinals, Errc code) {
  const auto group = GpuGroup::open(target_table(), std::vector<int>(ordinals));
  BOOST_TEST_REQUIRE(!group.ok());
  BOOST_TEST((group.error().code == code));
  return group.error().text;
}

bool has(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_CASE(sums_and_copies) {
  Prng prng(71);
  for (const std::size_t size : {1u, 2u, 3u, 4u}) {
    const auto gpus = target_group(size);
    if (!gpus) return;
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{5000}}) {
      std::vector<Floats> values;
      std::vector<DeviceArray<float>> arrays;
      std::vector<float*> pointers;
      std::vector<void*> memory;
      Floats sum(count, 0.0f);
      for (std::size_t d = 0; d < size; ++d) {
        values.push_back(drawn(prng, count));
        for (std::size_t i = 0; i < count; ++i) sum[i] += values[d][i];
        arrays.push_back(on((*gpus)[d], values[d]));
        pointers.push_back(arrays[d].data());
        memory.push_back(arrays[d].data());
      }
      BOOST_TEST_REQUIRE(gpus->add_up(pointers, count).ok());
      const Floats added = read(arrays[0], count);
      BOOST_TEST(distance(added, sum) < 1e-6);
      for (std::size_t d = 1; d < size; ++d) BOOST_TEST(same_bits(read(arrays[d], count), values[d]));
      BOOST_TEST_REQUIRE(gpus->spread(memory, count * sizeof(float)).ok());
      for (std::size_t d = 0; d < size; ++d) BOOST_TEST(same_bits(read(arrays[d], count), added));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_batch_in_parts) {
  Prng prng(72);
  for (const models::ModelConfig& config : test_models())
    for (const std::uint32_t rows : {1u, 2u, 7u, 12u})
      for (const std::size_t parts : {1u, 2u, 3u, 5u}) {
        const DrawnBatch all(prng, rows, config);
        const std::vector<models::Batch> pieces = split_batch(all.batch, parts);
        BOOST_TEST_REQUIRE(pieces.size() == parts);
        Floats x;
        std::vector<std::uint8_t> label;
        std::vector<models::Token> tokens;
        std::uint32_t sum = 0;
        for (const models::Batch& piece : pieces) {
          BOOST_TEST((piece.rows == rows / parts || piece.rows == rows / parts + 1));
          BOOST_TEST(piece.rows <= pieces.front().rows);
          sum += piece.rows;
          x.insert(x.end(), piece.x.begin(), piece.x.end());
          label.insert(label.end(), piece.label.begin(), piece.label.end());
          tokens.insert(tokens.end(), piece.tokens.begin(), piece.tokens.end());
        }
        BOOST_TEST(sum == rows);
        BOOST_TEST((x == all.x && label == all.label && tokens == all.tokens));
      }
}

BOOST_AUTO_TEST_CASE(a_split_model_is_the_whole_one) {
  if (!has_products(Target())) return;
  Prng prng(73);
  std::uint64_t order = 0;
  for (const models::ModelConfig& config : test_models()) {
    const Floats start = stirred(prng, *models::make_model(config).value(), 2e-3f);
    for (const std::size_t size : {2u, 3u}) {
      auto gpus = target_group(size, ++order);
      if (!gpus) return;
      Split whole(target_group(1), config, start), parts(std::move(gpus), config, start);
      std::vector<std::uint32_t> place{static_cast<std::uint32_t>(start.size()) - 1, 0, 3, 0};
      // Fewer rows than GPUs, as many, and more that do not divide; larger and smaller than before, and so often the
      // same that it is recorded; then other rows of which some GPU has as many.
      for (const std::uint32_t rows : {2u, 1u, 7u, 7u, 7u, 8u, 3u, 8u}) {
        const DrawnBatch all(prng, rows, config);
        const Outcome expected = whole.step(all.batch), got = parts.step(all.batch);
        BOOST_TEST(std::abs(got.loss - expected.loss) < 1e-6 * (1 + expected.loss));
        BOOST_TEST(distance(got.gradient, expected.gradient) < 1e-5);
        // Then parameters change at some places, and once everywhere.
        Floats value = drawn(prng, place.size());
        value[3] = value[1];
        for (Split* one : {&whole, &parts}) {
          one->put(place, value);
          if (rows != 7) continue;
          one->params.write(start.data(), start.size());
          BOOST_TEST_REQUIRE(one->model.follow(one->params).ok());
        }
        const models::Evaluation here = whole.model.evaluate(whole.params, all.batch).value();
        const models::Evaluation there = parts.model.evaluate(parts.params, all.batch).value();
        BOOST_TEST(here.loss == there.loss);
        place[2] = rows;
      }
    }
  }
}

// In the emulation alone it is certain that there is another GPU, with as much memory as it is given.
BOOST_AUTO_TEST_CASE(a_part_that_fails_is_told_and_forgotten) {
  if (on_device()) return;
  Prng prng(74);
  const models::ModelConfig config = test_models().front();
  const Floats start = stirred(prng, *models::make_model(config).value());
  Split parts(target_group(2), config, start);
  const DrawnBatch small(prng, 4, config), large(prng, 90'000, config);
  const float loss = parts.step(small.batch).loss;
  set_emulated_memory(1 << 20);
  const Result<float> full = parts.model.loss_and_gradient(parts.params, large.batch, parts.gradient);
  set_emulated_memory(0);
  BOOST_TEST_REQUIRE(!full.ok());
  BOOST_TEST((full.error().code == Errc::limit));
  BOOST_TEST(has(full.error().text, "use a smaller model"));
  BOOST_TEST(parts.step(small.batch).loss == loss);
  const Floats soft(std::size_t{4} * config.classes, 0.2f);
  models::Batch drawn_to = small.batch;
  drawn_to.soft = {soft, 0.5f};
  BOOST_TEST((parts.model.loss_and_gradient(parts.params, drawn_to, parts.gradient).error().code == Errc::usage));
  // Memory is each GPU's own.
  Floats two(2);
  const DeviceArray<float> there = on((*parts.gpus)[1], two);
  const Result<void> copied = parts.gpus->first().copy_out(two.data(), there.data(), sizeof(float));
  BOOST_TEST_REQUIRE(!copied.ok());
  BOOST_TEST(has(copied.error().text, "not of this device"));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_joined) {
  BOOST_TEST(why_not({}, Errc::usage) == "no GPU is named");
  BOOST_TEST(has(why_not({0, 1, 0}, Errc::usage), "GPU 0 is named twice; "));
  BOOST_TEST(has(why_not({0, 99}, Errc::io), "there is no GPU 99; this machine has "));
  BOOST_TEST(has(why_not({-1}, Errc::io), "there is no GPU -1; "));
  if (on_device()) return;
  BOOST_TEST(has(why_not({0, emulated_devices}, Errc::io), "there is no GPU 4; this machine has 4, counted from 0"));
  set_emulated_groups(false);
  const std::string alone = why_not({1, 2}, Errc::io);
  BOOST_TEST(GpuGroup::open(target_table(), std::vector<int>{3}).ok());
  set_emulated_groups(true);
  BOOST_TEST(has(alone, "2 GPUs cannot work together: that needs a library, which is not here"));
  BOOST_TEST(has(alone, "; or name a single one"));
}

BOOST_AUTO_TEST_CASE(names_for_people) {
  if (on_device()) return;
  BOOST_TEST(target_group(1)->name().value() == "emulation");
  BOOST_TEST(target_group(3)->name().value() == "3 x emulation");
}

BOOST_AUTO_TEST_SUITE_END()
