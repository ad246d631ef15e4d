// Replicas of a pipeline in virtual time: links with a delay, processors with a speed, deaths, and numbers
// that are easy to follow. Checks after every event that each micro-batch counts at most once in each stage, and that
// its gradient is made with the weights of its forward pass.
#pragma once

#include <boost/test/unit_test.hpp>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "gossip/pipeline/pipeline.h"
#include "runtime/base/bytes.h"

namespace rumor::gossip::test {

inline constexpr std::size_t label_bytes = 8;

struct PipelineSizes {
  std::vector<std::size_t> replicas = {1, 1, 1};  // of each stage
  std::uint32_t micro_batches = 4;
  std::uint64_t window = 4;
  std::size_t border_bytes = 100;
  bool overlap = false;
};

class PipelineWorld {
 public:
  struct Node {
    std::unique_ptr<Pipeline> pipeline;
    StreamId stream;
    std::uint32_t stage = 1;
    bool alive = true;
    Duration work = 1ms;  // of one Work
    std::multiset<MicroBatchName> sum, next_sum;  // of the step under way, and of those ahead
    // The weights, by their number, that each micro-batch was begun with. Its bytes tell copies apart.
    std::map<std::pair<MicroBatchName, std::shared_ptr<const Bytes>>, std::size_t> begun_with;
    std::size_t ahead = 0;  // micro-batches
    std::vector<std::multiset<MicroBatchName>> steps;
    Duration busy{0};
    std::size_t notes = 0;
    std::vector<std::string> closed;  // reasons of links that it closed
  };

  explicit PipelineWorld(PipelineSizes sizes, std::uint64_t seed = 1) : sizes_(sizes), prng_(seed) {
    for (std::uint32_t stage = 1; stage <= sizes.replicas.size(); ++stage)
      for (std::size_t i = 0; i < sizes.replicas[stage - 1]; ++i) add_node(stage);
    for (std::size_t a = 0; a < nodes.size(); ++a)
      for (std::size_t b = a + 1; b < nodes.size(); ++b)
        if (nodes[b].stage == nodes[a].stage + 1) link(a, b);
  }

  std::size_t add_node(std::uint32_t stage) {
    PipelineOptions options;
    options.self.pipeline.bytes[0] = 9;
    options.self.stage = stage;
    options.self.stages = static_cast<std::uint32_t>(sizes_.replicas.size());
    options.stream.bytes[0] = static_cast<std::uint8_t>(nodes.size() + 1);
    options.micro_batches = sizes_.micro_batches;
    options.window = sizes_.window;
    options.overlap = sizes_.overlap;
    Node node;
    node.pipeline = std::make_unique<Pipeline>(options, Prng(prng_.next()));
    node.stage = stage;
    node.stream = options.stream;
    nodes.push_back(std::move(node));
    const std::size_t i = nodes.size() - 1;
    call(i, [&](Pipeline& one, PipelineOutbox& out) { one.begin_step(now, out); });
    return i;
  }

  LinkId link(std::size_t lower, std::size_t upper) {
    const LinkId id{++links_made_};
    ends_[id] = {lower, upper};
    for (const std::size_t end : {lower, upper})
      at(now, [=, this] {
        if (ends_.contains(id))
          call(end, [&](Pipeline& one, PipelineOutbox& out) { one.on_linked(id, out); });
      });
    return id;
  }

  void emit(std::size_t node, bool on) {
    call(node, [&](Pipeline& one, PipelineOutbox& out) { one.set_emitting(on, now, out); });
  }
  void emit_all(bool on) {
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (nodes[i].stage == 1 && nodes[i].alive) emit(i, on);
  }
  void kill(std::size_t node) {
    nodes[node].alive = false;
    std::vector<LinkId> lost;
    for (const auto& [id, ends] : ends_)
      if (ends[0] == node || ends[1] == node) lost.push_back(id);
    for (const LinkId id : lost) cut(id, 50ms);
  }
  // Both ends hear of it after up to `later`.
  void cut(LinkId id, Duration later) {
    const auto ends = ends_.at(id);
    ends_.erase(id);
    for (const std::size_t end : ends)
      at(now + Duration(prng_.between(0, later.count())), [=, this] {
        call(end, [&](Pipeline& one, PipelineOutbox& out) { one.on_unlinked(id, now, out); });
      });
  }
  std::optional<LinkId> link_between(std::size_t lower, std::size_t upper) const {
    for (const auto& [id, ends] : ends_)
      if (ends[0] == lower && ends[1] == upper) return id;
    return std::nullopt;
  }

  void run(Duration length) {
    const TimePoint end = now + length;
    for (;;) {
      TimePoint next = events_.empty() ? never : events_.begin()->first;
      for (const Node& node : nodes)
        if (node.alive) next = std::min(next, node.pipeline->next_deadline());
      if (next > end) break;
      now = std::max(now, next);
      for (std::size_t i = 0; i < nodes.size(); ++i)
        if (nodes[i].alive && nodes[i].pipeline->next_deadline() <= now)
          call(i, [&](Pipeline& one, PipelineOutbox& out) { one.on_time(now, out); });
      while (!events_.empty() && events_.begin()->first <= now) {
        const auto act = std::move(events_.begin()->second);
        events_.erase(events_.begin());
        act();
      }
    }
    now = end;
  }

  // How often each micro-batch is in a step of this stage.
  std::map<MicroBatchName, int> counted(std::uint32_t stage) const {
    std::map<MicroBatchName, int> all;
    for (const Node& node : nodes)
      for (const auto& step : node.steps)
        if (node.stage == stage)
          for (const MicroBatchName& name : step) ++all[name];
    return all;
  }

  // Gives a node's pipeline an input and carries out the effects.
  void call(std::size_t node, const std::function<void(Pipeline&, PipelineOutbox&)>& input) {
    if (!nodes[node].alive) return;
    PipelineOutbox out;
    input(*nodes[node].pipeline, out);
    nodes[node].pipeline->check_invariants();
    for (PipelineEffect& effect : out) std::visit([&](auto& one) { carry_out(node, one); }, effect);
  }
  void deliver(LinkId id, std::size_t to, Bytes frame) {
    call(to, [&](Pipeline& one, PipelineOutbox& out) { one.on_frame(id, decode(frame).value(), now, out); });
  }

  TimePoint now{1s};
  std::vector<Node> nodes;
  Duration delay = 2ms;
  std::function<bool(const Work&)> is_unreadable = [](const Work&) { return false; };

 private:
  void at(TimePoint when, std::function<void()> act) { events_.emplace(when, std::move(act)); }

  void carry_out(std::size_t node, Send& send) {
    const auto ends = ends_.find(send.link);
    if (ends == ends_.end()) return;
    const std::size_t to = ends->second[0] == node ? ends->second[1] : ends->second[0];
    const LinkId id = send.link;
    at(now + delay, [=, this, frame = std::move(send.frame).joined()] {
      if (ends_.contains(id)) deliver(id, to, frame);
    });
  }
  void carry_out(std::size_t node, Close& closing) {
    nodes[node].closed.push_back(closing.reason);
    if (ends_.contains(closing.link)) cut(closing.link, 1ms);
  }
  void carry_out(std::size_t node, Note&) { ++nodes[node].notes; }

  // Border numbers: bytes that each stage counts up on the way up and down on the way down.
  void carry_out(std::size_t node, Work& work) {
    Node& self = nodes[node];
    self.busy += self.work;
    at(now + self.work, [=, this] {
      if (is_unreadable(work))
        return call(node, [&](Pipeline& one, PipelineOutbox& out) { one.on_unreadable(now, out); });
      Made made = compute(nodes[node], work);
      call(node, [&](Pipeline& one, PipelineOutbox& out) { one.on_made(std::move(made), now, out); });
    });
  }

  Made compute(Node& node, const Work& work) const {
    Made made;
    const std::size_t weights = node.steps.size() - (work.stashed_weights ? 1 : 0);
    // Kept, so that no other copy of the micro-batch gets its address.
    const std::pair copy(work.name, work.name.source == node.stream ? nullptr : work.below);
    const auto begun = node.begun_with.emplace(copy, weights).first;
    BOOST_TEST_REQUIRE(begun->second == weights, "forward and backward have other weights");
    const auto stage = static_cast<std::uint8_t>(node.stage);
    if (work.kind == Work::Kind::emit || work.kind == Work::Kind::forward) {
      ByteWriter body;
      body.u64(work.name.number);
      body.raw(Bytes(sizes_.border_bytes, stage));
      made = {.bytes = body.take(), .own = {1, 2, 3}, .rows = 2, .label_bytes = label_bytes};
      if (work.kind == Work::Kind::forward) check_below(work, stage);
      return made;
    }
    std::multiset<MicroBatchName>& sum = work.ahead ? node.next_sum : node.sum;
    if (work.begins_sum) sum.clear();
    sum.insert(work.name);
    if (work.kind == Work::Kind::both) {
      check_below(work, stage);
      made.loss = static_cast<float>(work.name.number);
    } else {
      BOOST_TEST_REQUIRE(
          (*work.change == Bytes(sizes_.border_bytes, static_cast<std::uint8_t>(100 + stage + 1))));
    }
    if (stage == 1) {
      BOOST_TEST_REQUIRE((*work.below == Bytes{1, 2, 3}));
    } else {
      made.bytes = Bytes(sizes_.border_bytes, static_cast<std::uint8_t>(100 + stage));
    }
    return made;
  }
  void check_below(const Work& work, std::uint8_t stage) const {
    BOOST_TEST_REQUIRE(work.label_bytes == label_bytes);
    BOOST_TEST_REQUIRE(work.rows == 2u);
    ByteReader in(*work.below);
    BOOST_TEST_REQUIRE(in.u64() == work.name.number);
    BOOST_TEST_REQUIRE((Bytes(work.below->begin() + 8, work.below->end()) ==
                        Bytes(sizes_.border_bytes, static_cast<std::uint8_t>(stage - 1))));
  }

  void carry_out(std::size_t node, MakeStep& step) {
    Node& self = nodes[node];
    BOOST_TEST_REQUIRE(step.micro_batches == sizes_.micro_batches);
    BOOST_TEST_REQUIRE(step.rows == 2 * sizes_.micro_batches);
    BOOST_TEST_REQUIRE(self.sum.size() == sizes_.micro_batches);
    double loss = 0;
    for (const MicroBatchName& name : self.sum) loss += static_cast<double>(name.number) / step.micro_batches;
    BOOST_TEST_REQUIRE(std::abs(static_cast<double>(step.loss) - loss) < 1e-3 * loss);
    self.steps.push_back(self.sum);
    for (const MicroBatchName& name : self.sum)
      BOOST_TEST_REQUIRE(once_[self.stage].insert(name).second,
                         "a micro-batch counts twice in stage " << self.stage);
    BOOST_TEST_REQUIRE((sizes_.overlap || step.ahead.empty()));
    self.sum.clear();
    if (!step.ahead.empty()) self.sum.swap(self.next_sum);
    self.ahead += step.ahead.size();
    at(now + 1ms,
       [=, this] { call(node, [&](Pipeline& one, PipelineOutbox& out) { one.begin_step(now, out); }); });
  }

  PipelineSizes sizes_;
  Prng prng_;
  std::multimap<TimePoint, std::function<void()>> events_;
  std::map<LinkId, std::array<std::size_t, 2>> ends_;
  std::map<std::uint32_t, std::set<MicroBatchName>> once_;  // counted in steps, by stage
  std::uint64_t links_made_ = 0;
};

}  // namespace rumor::gossip::test
