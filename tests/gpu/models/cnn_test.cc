// DeviceCnn against models::Cnn: loss, gradient and evaluation of plain and residual networks; windows for a few
// pictures at a time; batches of changing size.
#include "gpu/models/cnn.h"

#include <boost/test/unit_test.hpp>

#include "models/families/cnn.h"
#include "tests/gpu/models/model_support.h"

using namespace rumor;
using namespace rumor::gpu;

BOOST_AUTO_TEST_SUITE(gpu_cnn)

namespace {

struct Net {
  std::vector<std::uint32_t> stages;
  std::uint32_t blocks, pool_every, groups, height, width, channels;
  std::vector<std::uint32_t> hidden;

  models::ModelConfig config() const {
    models::ModelConfig made;
    made.family = "cnn";
    made.stage_channels = stages;
    made.blocks = blocks;
    made.pool_every = pool_every;
    made.groups = groups;
    made.height = height;
    made.width = width;
    made.channels = channels;
    made.hidden = hidden;
    made.classes = 7;
    made.inputs = height * width * channels;
    return made;
  }
};

// With a bias, with GroupNorm, with neither pooling, and residual, with stages that widen.
const Net nets[] = {{{4}, 0, 1, 0, 5, 6, 1, {}},
                    {{4, 6}, 0, 1, 2, 8, 9, 3, {5}},
                    {{3, 8}, 0, 2, 0, 7, 5, 2, {6, 4}},
                    {{4, 8}, 1, 1, 2, 8, 8, 3, {}},
                    {{2, 4}, 2, 1, 1, 6, 7, 1, {3}}};

struct Album {
  Floats x;
  std::vector<std::uint8_t> label;
  models::Batch batch;

  Album(Prng& prng, std::uint32_t rows, const models::ModelConfig& config)
      : x(drawn(prng, std::size_t{rows} * config.inputs)), label(rows) {
    for (std::uint8_t& one : label) one = static_cast<std::uint8_t>(prng.below(config.classes));
    batch = {x, label, rows};
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(loss_and_gradient_are_those_of_the_cpu) {
  Prng prng(71);
  std::uint64_t order = 0;
  for (const Net& net : nets) {
    const models::ModelConfig config = net.config();
    const std::unique_ptr<models::Model> cpu = models::make_cnn(config).value();
    const Album album(prng, 5, config);
    const Floats params = stirred(prng, *cpu);
    Floats gradient(params.size()), found(params.size());
    const float loss = cpu->loss_and_gradient(params, album.batch, gradient);
    const models::Evaluation evaluation = cpu->evaluate(params, album.batch);
    // All windows at once, and those of one or two pictures.
    for (const std::size_t seen_max : {std::size_t{1} << 24, std::size_t{2} * 9 * 8 * 8 * 4}) {
      const Target target(order++);
      if (!has_products(target)) return;
      DeviceCnn cnn = DeviceCnn::create(*target.gpu, config, Precision::fp32, seen_max).value();
      const DeviceArray<float> on_params = copied(target, params), on_gradient = copied(target, gradient);
      target.table().fill(target.device(), on_gradient.data(), 0xff, gradient.size() * sizeof(float));
      const Result<float> got = cnn.loss_and_gradient(on_params, album.batch, on_gradient);
      BOOST_TEST_REQUIRE(got.ok());
      BOOST_TEST(std::abs(*got - loss) < 1e-5 * (1 + std::abs(loss)));
      BOOST_TEST_REQUIRE(on_gradient.read(found.data(), found.size()).ok());
      for (const TensorInfo& tensor : cpu->layout().tensors())
        BOOST_TEST(distance(part_of(found, tensor), part_of(gradient, tensor)) < 1e-4, tensor.name);
      const models::Evaluation seen = cnn.evaluate(on_params, album.batch).value();
      BOOST_TEST(std::abs(seen.loss - evaluation.loss) < 1e-5 * (1 + evaluation.loss));
      BOOST_TEST(*seen.accuracy == *evaluation.accuracy);
    }
  }
}

BOOST_AUTO_TEST_CASE(batches_of_changing_size) {
  Prng prng(72);
  const models::ModelConfig config = nets[3].config();
  const std::unique_ptr<models::Model> cpu = models::make_cnn(config).value();
  const Target target(3);
  if (!has_products(target)) return;
  DeviceCnn cnn = DeviceCnn::create(*target.gpu, config, Precision::fp32).value();
  const Floats params = stirred(prng, *cpu);
  const DeviceArray<float> on_params = copied(target, params), on_gradient = copied(target, params);
  for (const std::uint32_t rows : {3u, 1u, 70u, 2u}) {
    const Album album(prng, rows, config);
    Floats gradient(params.size()), found(params.size());
    cpu->loss_and_gradient(params, album.batch, gradient);
    BOOST_TEST_REQUIRE(cnn.loss_and_gradient(on_params, album.batch, on_gradient).ok());
    BOOST_TEST_REQUIRE(on_gradient.read(found.data(), found.size()).ok());
    BOOST_TEST(distance(found, gradient) < 1e-4);
    const models::Evaluation expected = cpu->evaluate(params, album.batch);
    const models::Evaluation got = cnn.evaluate(on_params, album.batch).value();
    BOOST_TEST(std::abs(got.loss - expected.loss) < 1e-5 * (1 + expected.loss));
    BOOST_TEST(*got.accuracy == *expected.accuracy);
  }
}

BOOST_AUTO_TEST_SUITE_END()
