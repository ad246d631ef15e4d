// Parts of a model that train through a pipeline: the first step has the bits of the whole model, and
// training ends where the whole model's does. Bytes of neighbours that do not fit are refused.
#include "runtime/stages/stage_worker.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>

#include "gossip/pipeline/pipeline.h"
#include "models/evaluate/evaluation.h"
#include "tests/shortened.h"
#include "tests/unit/models/scratch.h"

namespace rumor {
namespace {

using compress::BorderNumbers;
using gossip::LinkId;

// A whole model, its data and a way to cut it.
struct StageTask {
  models::ModelConfig config;
  std::shared_ptr<const models::DataSet> data;
  std::uint32_t rows = 8, micro_batches = 3;

  models::BatchSampler sampler() const { return {data, {0, 1}, rows, 7}; }
};

StageTask stage_vectors(const std::string& family) {
  models::DataConfig of_data;
  StageTask task;
  task.data = models::load_data(of_data).value();
  task.data->describe(task.config);
  task.config.family = family;
  task.config.hidden = {24, 16, 12};
  return task;
}

// The same rows as pictures of 8 x 8, for a residual network.
StageTask stage_pictures() {
  StageTask task = stage_vectors("cnn");
  task.config.channels = 1;
  task.config.height = task.config.width = 8;
  task.config.stage_channels = {4, 6};
  task.config.blocks = 2;
  task.config.groups = 2;
  task.config.hidden = {};
  return task;
}

// A text that can be learned: a pattern of seven letters with some chance in it.
StageTask stage_text(const std::string& family) {
  std::string text;
  Prng prng(3);
  for (int i = 0; i < 6'000; ++i)
    text.push_back(static_cast<char>(i % 7 == 0 ? 'p' + static_cast<int>(prng.below(4)) : 'a' + i % 7));
  const models::Scratch scratch;
  scratch.write("text", text);
  StageTask task;
  task.config.family = family;
  task.config.context = 16;
  task.config.layers = 4;
  task.config.heads = 2;
  task.config.embedding = 32;
  task.config.hidden = {24, 24, 24};
  task.config.tied_head = false;
  task.data = models::load_data({.kind = "text", .path = scratch / "text"}, task.config.context).value();
  task.data->describe(task.config);
  return task;
}

// The stages of a task, one replica each, which exchange frames without a network.
class StageLine {
 public:
  StageLine(const StageTask& task, std::uint32_t stages, BorderNumbers numbers) : task_(task) {
    const auto parts = models::cut_model(task.config, stages, {}).value();
    for (std::uint32_t i = 0; i < stages; ++i) {
      models::ModelConfig config = task.config;
      config.units = parts[i];
      std::optional<models::BatchSampler> sampler;
      if (i == 0) sampler.emplace(task.sampler());
      Node node{
          StageWorker::create(config, {numbers, task.rows}, i == 0 ? task.data : nullptr, std::move(sampler))
              .value(),
          pipeline_of(i + 1, stages),
          {},
          {},
          {}};
      node.weights = models::to_floats(models::initial_weights(node.worker.model(), 5, 24), 24);
      node.gradient.resize(node.weights.size());
      nodes_.push_back(std::move(node));
    }
    for (std::uint32_t i = 0; i < stages; ++i) {
      call(i, [&](auto& one, auto& out) { one.begin_step(now_, out); });
      if (i > 0) call(i, [&](auto& one, auto& out) { one.on_linked(LinkId{i}, out); });
      if (i + 1 < stages) call(i, [&](auto& one, auto& out) { one.on_linked(LinkId{i + 1}, out); });
    }
    call(0, [&](auto& one, auto& out) { one.set_emitting(true, now_, out); });
  }

  // One step of every stage, with plain SGD.
  float step(float rate) {
    std::size_t done = 0;
    while (done < nodes_.size()) {
      BOOST_REQUIRE(!waiting_.empty());
      auto act = std::move(waiting_.front());
      waiting_.pop_front();
      act();
      for (std::size_t i = done = 0; i < nodes_.size(); ++i) done += nodes_[i].stepped.has_value();
    }
    const float loss = nodes_.back().stepped->loss;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      Node& node = nodes_[i];
      node.worker.complete_step(*node.stepped, node.weights, node.gradient);
      for (std::size_t w = 0; w < node.weights.size(); ++w) node.weights[w] -= rate * node.gradient[w];
      node.stepped.reset();
      call(i, [&](auto& one, auto& out) { one.begin_step(now_, out); });
    }
    return loss;
  }

  // Tensors of all stages, one after another: the parameters of the whole model.
  std::vector<float> joined(bool gradients) const {
    std::vector<float> all;
    for (const Node& node : nodes_) {
      const std::vector<float>& own = gradients ? node.gradient : node.weights;
      all.insert(all.end(), own.begin(), own.end());
    }
    return all;
  }
  std::size_t sent_bytes() const { return sent_bytes_; }

 private:
  struct Node {
    StageWorker worker;
    std::unique_ptr<gossip::Pipeline> pipeline;
    std::vector<float> weights, gradient;
    std::optional<gossip::MakeStep> stepped;
  };

  std::unique_ptr<gossip::Pipeline> pipeline_of(std::uint32_t stage, std::uint32_t stages) const {
    gossip::PipelineOptions options;
    options.self.pipeline.bytes[0] = 1;
    options.self.stage = stage;
    options.self.stages = stages;
    options.stream.bytes[0] = 1;
    options.micro_batches = task_.micro_batches;
    return std::make_unique<gossip::Pipeline>(options, Prng(stage));
  }

  template <class Input>
  void call(std::size_t i, const Input& input) {
    gossip::PipelineOutbox out;
    input(*nodes_[i].pipeline, out);
    for (gossip::PipelineEffect& effect : out) std::visit([&](auto& one) { carry_out(i, one); }, effect);
  }
  // Link i leads from node i - 1 to node i.
  void carry_out(std::size_t i, gossip::Send& send) {
    const std::size_t link = static_cast<std::size_t>(send.link), to = link == i ? i - 1 : i + 1;
    sent_bytes_ += send.frame.size();
    waiting_.push_back([=, this, frame = std::move(send.frame).joined()] {
      const auto decoded = gossip::decode(frame).value();
      call(to, [&](auto& one, auto& out) { one.on_frame(LinkId{link}, decoded, now_, out); });
    });
  }
  void carry_out(std::size_t i, gossip::Work& work) {
    waiting_.push_back([=, this] {
      auto made = nodes_[i].worker.make(work, nodes_[i].weights);
      BOOST_REQUIRE(made.ok());
      call(i, [&](auto& one, auto& out) { one.on_made(std::move(*made), now_, out); });
    });
  }
  void carry_out(std::size_t i, gossip::MakeStep& step) { nodes_[i].stepped = step; }
  void carry_out(std::size_t, gossip::Close& close) { BOOST_ERROR(close.reason); }
  void carry_out(std::size_t, gossip::Note&) {}

  StageTask task_;
  TimePoint now_{1s};
  std::vector<Node> nodes_;
  std::deque<std::function<void()>> waiting_;
  std::size_t sent_bytes_ = 0;
};

// The whole model, with the same micro-batches and the same arithmetic.
struct WholeModel {
  explicit WholeModel(const StageTask& of)
      : task(of), model(models::make_model(of.config).value()), sampler(of.sampler()) {
    weights = models::to_floats(models::initial_weights(*model, 5, 24), 24);
  }

  float step(float rate) {
    std::vector<float> one(weights.size());
    gradient.assign(weights.size(), 0);
    float loss = 0;
    for (std::uint32_t i = 0; i < task.micro_batches; ++i) {
      loss += model->loss_and_gradient(weights, sampler.next(), one);
      for (std::size_t w = 0; w < one.size(); ++w) gradient[w] = i == 0 ? one[w] : gradient[w] + one[w];
    }
    for (std::size_t w = 0; w < weights.size(); ++w) {
      gradient[w] /= static_cast<float>(task.micro_batches);
      weights[w] -= rate * gradient[w];
    }
    return loss / static_cast<float>(task.micro_batches);
  }

  double test_loss(std::span<const float> of) {
    return models::evaluate_on_test(*model, *task.data, of, 64).loss;
  }

  StageTask task;
  std::unique_ptr<models::Model> model;
  models::BatchSampler sampler;
  std::vector<float> weights, gradient;
};

bool same_stage_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// A stage in the middle of a GPT and one at its end, for bytes that a neighbour might send.
struct StageReceiver {
  StageTask task = stage_text("gpt");
  StageWorker worker;
  std::vector<float> weights;

  explicit StageReceiver(models::UnitRange units, std::uint32_t passes = 1)
      : worker(StageWorker::create(part(task.config, units), {BorderNumbers::f32, task.rows, passes}, nullptr, {})
                   .value()),
        weights(worker.model().layout().params(), 0.01f) {}
  static models::ModelConfig part(models::ModelConfig config, models::UnitRange units) {
    config.units = units;
    return config;
  }
  std::size_t labels() const { return task.rows * (task.config.context + 1) * 4; }
  std::size_t border() const { return task.rows * task.config.context * task.config.embedding * 4; }
  gossip::Work work(gossip::Work::Kind kind, Bytes below, std::uint64_t number = 1) const {
    gossip::Work made{.kind = kind, .name = {{}, number}, .rows = task.rows, .label_bytes = labels()};
    made.below = std::make_shared<const Bytes>(std::move(below));
    return made;
  }
  // Labels, and activations that differ with `which`.
  Bytes rows(std::uint8_t which) const {
    Bytes made(labels() + border(), 0);
    for (std::size_t i = labels() + 2; i < made.size(); i += 4) {
      made[i] = static_cast<std::uint8_t>(i * which % 128);
      made[i + 1] = 0x3e;
    }
    return made;
  }
  std::string refusal(const gossip::Work& work) {
    const auto made = worker.make(work, weights);
    return made ? "" : made.error().text;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(stage_worker)

BOOST_AUTO_TEST_CASE(a_pipeline_with_f32_borders_has_the_bits_of_the_whole_model) {
  for (const StageTask& task :
       {stage_vectors("mlp"), stage_pictures(), stage_text("gpt"), stage_text("llama"), stage_text("lstm")}) {
    for (const std::uint32_t stages : {2u, 3u, 4u}) {
      if (task.config.family == "lstm" && stages == 4) continue;  // of three layers
      WholeModel whole(task);
      StageLine line(task, stages, BorderNumbers::f32);
      for (int step = 0; step < 3; ++step) {
        const float loss = whole.step(0.1f);
        BOOST_TEST(std::abs(line.step(0.1f) - loss) < 1e-6f * loss);
        BOOST_TEST(same_stage_bits(line.joined(true), whole.gradient),
                   task.config.family << " in " << stages);
        BOOST_TEST(same_stage_bits(line.joined(false), whole.weights),
                   task.config.family << " in " << stages);
      }
    }
  }
}

// The loss of a GPT in three stages ends within half a percent of the whole model's, with every kind of
// border.
BOOST_AUTO_TEST_CASE(training_ends_where_the_whole_model_does) {
  const StageTask task = stage_text("gpt");
  WholeModel whole(task);
  const int steps = static_cast<int>(test::shortened(150));
  constexpr float rate = 0.3f;
  const double before = whole.test_loss(whole.weights);
  for (int step = 0; step < steps; ++step) whole.step(rate);
  const double after = whole.test_loss(whole.weights);
  BOOST_TEST(after < (steps == 150 ? before / 3 : before));
  std::size_t bytes = 0;
  for (const BorderNumbers numbers : {BorderNumbers::f32, BorderNumbers::bf16, BorderNumbers::int8}) {
    StageLine line(task, 3, numbers);
    for (int step = 0; step < steps; ++step) line.step(rate);
    const double loss = whole.test_loss(line.joined(false));
    BOOST_TEST_MESSAGE("border " << static_cast<int>(numbers) << ": loss " << loss << " of " << after << ", "
                                 << line.sent_bytes() / steps << " bytes a step");
    BOOST_TEST(std::abs(loss - after) < 0.005 * after);
    if (numbers == BorderNumbers::f32) bytes = line.sent_bytes();
    if (numbers == BorderNumbers::int8) BOOST_TEST(line.sent_bytes() < bytes * 0.3);
  }
}

BOOST_AUTO_TEST_CASE(bytes_of_a_neighbour_that_do_not_fit_are_refused) {
  using Kind = gossip::Work::Kind;
  StageReceiver last({2, 4}), middle({1, 2});
  const Bytes good(last.labels() + last.border(), 0);
  BOOST_TEST(last.refusal(last.work(Kind::both, good)) == "");
  BOOST_TEST(
      last.refusal(last.work(Kind::both, Bytes(good.begin(), good.end() - 1))).starts_with("a border of"));
  Bytes beyond = good;
  beyond[2] = 1;  // token 65,536
  BOOST_TEST(last.refusal(last.work(Kind::both, beyond)) == "a token beyond the vocabulary");
  Bytes infinite = good;
  infinite[last.labels() + 2] = 0x80;
  infinite[last.labels() + 3] = 0x7f;
  BOOST_TEST(
      last.refusal(last.work(Kind::both, infinite)).starts_with("a border with a value that is not finite"));
  gossip::Work work = last.work(Kind::both, good);
  work.label_bytes -= 4;
  BOOST_TEST(last.refusal(work).starts_with("labels of"));
  work = last.work(Kind::both, good);
  ++work.rows;
  BOOST_TEST(last.refusal(work).starts_with("a micro-batch of 9 rows"));
  BOOST_TEST(middle.refusal(middle.work(Kind::forward, good)) == "");
  work = middle.work(Kind::backward, good);
  work.begins_sum = true;
  work.change = std::make_shared<const Bytes>(middle.border() + 4, std::uint8_t{0});
  BOOST_TEST(middle.refusal(work).starts_with("a border of"));
  work.change = std::make_shared<const Bytes>(middle.border(), std::uint8_t{0});
  BOOST_TEST(middle.refusal(work) == "");
}

// Another forward pass came between forward and backward of a micro-batch: the gradient is the same.
BOOST_AUTO_TEST_CASE(a_forward_pass_in_between_changes_nothing) {
  using Kind = gossip::Work::Kind;
  StageReceiver one({1, 2});
  Bytes first(one.labels() + one.border(), 0), second = first;
  for (std::size_t i = one.labels() + 2; i < first.size(); i += 4)
    first[i] = static_cast<std::uint8_t>(i % 128);
  for (std::size_t i = one.labels() + 3; i < first.size(); i += 4) first[i] = second[i] = 0x3e;
  const auto change =
      std::make_shared<const Bytes>(Bytes(first.begin() + static_cast<long>(one.labels()), first.end()));
  const auto gradient = [&](bool between) {
    gossip::Work work = one.work(Kind::forward, first);
    BOOST_REQUIRE(one.worker.make(work, one.weights).ok());
    if (between) BOOST_REQUIRE(one.worker.make(one.work(Kind::forward, second), one.weights).ok());
    work.kind = Kind::backward;
    work.change = change;
    work.begins_sum = true;
    std::vector<float> out(one.weights.size());
    const auto made = one.worker.make(work, one.weights);
    BOOST_REQUIRE(made.ok());
    one.worker.complete_step({.micro_batches = 1}, one.weights, out);
    out.push_back(static_cast<float>(made->bytes[7]));
    return out;
  };
  BOOST_TEST(same_stage_bits(gradient(false), gradient(true)));
}

// Three forward passes, then three backward: each keeps its activations if they may, and the gradients are the same.
BOOST_AUTO_TEST_CASE(kept_activations_save_the_second_forward_pass) {
  using Kind = gossip::Work::Kind;
  const auto gradient = [](std::uint32_t passes, std::uint64_t expected) {
    StageReceiver one({1, 2}, passes);
    std::vector<gossip::Work> works;
    for (std::uint8_t i = 1; i <= 3; ++i) works.push_back(one.work(Kind::forward, one.rows(i), i));
    for (const gossip::Work& work : works) BOOST_REQUIRE(one.worker.make(work, one.weights).ok());
    for (gossip::Work& work : works) {
      work.kind = Kind::backward;
      work.begins_sum = work.name.number == 1;
      const Bytes rows = one.rows(9);
      work.change = std::make_shared<const Bytes>(rows.begin() + static_cast<long>(one.labels()), rows.end());
      BOOST_REQUIRE(one.worker.make(work, one.weights).ok());
    }
    BOOST_TEST(one.worker.forward_passes() == expected);
    std::vector<float> out(one.weights.size());
    one.worker.complete_step({.micro_batches = 3}, one.weights, out);
    return out;
  };
  const std::vector<float> again = gradient(1, 6);
  BOOST_TEST(same_stage_bits(again, gradient(2, 5)));
  BOOST_TEST(same_stage_bits(again, gradient(3, 3)));
}

// A micro-batch that began before a step is finished with the weights that it began with, in the sum of the next step.
BOOST_AUTO_TEST_CASE(a_micro_batch_ahead_keeps_the_weights_that_it_began_with) {
  using Kind = gossip::Work::Kind;
  for (const std::uint32_t passes : {1u, 4u}) {
    StageReceiver one({2, 4}, passes), other({2, 4}, passes);
    const std::size_t params = one.weights.size();
    std::vector<float> first(params), second(params), alone(params), fresh(params);
    // Alone: the second micro-batch with the first weights, and the third with the second weights.
    const std::vector<float> later(params, 0.02f);
    gossip::Work work = other.work(Kind::both, other.rows(2), 2);
    work.begins_sum = true;
    BOOST_REQUIRE(other.worker.make(work, other.weights).ok());
    other.worker.complete_step({.micro_batches = 1}, other.weights, alone);
    work = other.work(Kind::both, other.rows(3), 3);
    work.begins_sum = true;
    BOOST_REQUIRE(other.worker.make(work, later).ok());
    other.worker.complete_step({.micro_batches = 1}, later, fresh);

    work = one.work(Kind::both, one.rows(1), 1);
    work.begins_sum = true;
    BOOST_REQUIRE(one.worker.make(work, one.weights).ok());
    work = one.work(Kind::both, one.rows(2), 2);
    work.begins_sum = work.ahead = true;
    BOOST_REQUIRE(one.worker.make(work, one.weights).ok());
    one.worker.complete_step({.micro_batches = 1, .ahead = {work.name}}, one.weights, first);
    BOOST_TEST(!same_stage_bits(first, alone));
    // Its gradient is dropped and made again, and another one joins it.
    work.ahead = false;
    work.stashed_weights = true;
    BOOST_REQUIRE(one.worker.make(work, later).ok());
    work = one.work(Kind::both, one.rows(3), 3);
    BOOST_REQUIRE(one.worker.make(work, later).ok());
    one.worker.complete_step({.micro_batches = 2}, later, second);
    for (std::size_t i = 0; i < params; ++i) alone[i] = (alone[i] + fresh[i]) / 2;
    BOOST_TEST(same_stage_bits(second, alone));
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor
