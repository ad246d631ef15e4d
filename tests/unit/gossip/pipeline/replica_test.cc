// One replica of a stage, and neighbours that the test plays: what it computes, counts, drops, refuses and
// complains of.
#include <boost/test/unit_test.hpp>

#include "gossip/pipeline/pipeline.h"

namespace rumor::gossip::test {

namespace {

// A replica of stage 2 of 3, with a lower and an upper neighbour. Records what it asks for.
struct Middle {
  static constexpr LinkId below{1}, above{2};
  PipelineOptions options;
  std::optional<Pipeline> one;
  PipelineOutbox out;
  TimePoint now{1s};

  explicit Middle(std::uint32_t micro_batches = 2, bool overlap = false) {
    options.overlap = overlap;
    options.self.pipeline.bytes[0] = 9;
    options.self.stage = 2;
    options.self.stages = 3;
    options.micro_batches = micro_batches;
    options.transfer_bytes_max = 8;
    one.emplace(options, Prng(1));
    for (const LinkId link : {below, above}) one->on_linked(link, out);
    give(below, stage(1));
    give(above, stage(3));
    give(above, Credit{100});
    one->begin_step(now, out);
  }
  Stage stage(std::uint32_t which) const {
    Stage made = options.self;
    made.stage = which;
    return made;
  }
  // Through the wire, as a peer's frame comes.
  template <class Message>
  void give(LinkId link, const Message& message) {
    const Bytes bytes = encode(message);
    one->on_frame(link, decode(bytes).value(), now, out);
    one->check_invariants();
  }
  static MicroBatchName name(std::uint64_t number) {
    MicroBatchName made;
    made.source.bytes[0] = 7;
    made.number = number;
    return made;
  }
  static Bytes body() { return {1, 1, 1, 1, 2, 2, 2, 2}; }  // four bytes of labels, four of numbers
  void activations(std::uint64_t transfer, std::uint64_t number) {
    const Bytes bytes = body();
    give(below, Activations{transfer, ActivationsBegin{name(number), 2, 4, bytes.size()}, bytes, false});
  }
  void gradients(std::uint64_t transfer, std::size_t size = 4) {
    const Bytes bytes(size, 3);
    give(above, Gradients{transfer, GradientsBegin{0.5f, bytes.size()}, bytes, false});
  }
  void made(Bytes bytes) {
    one->on_made({.bytes = std::move(bytes), .label_bytes = 4}, now, out);
    one->check_invariants();
  }
  // Forward, up, answered, backward, down.
  void through(std::uint64_t transfer, std::uint64_t number) {
    activations(transfer, number);
    made(body());
    gradients(transfer);
    made(Bytes(4, 4));
  }
  // Effects of a kind since the last call of clear().
  template <class Kind>
  std::vector<Kind> all() const {
    std::vector<Kind> found;
    for (const PipelineEffect& effect : out)
      if (const Kind* kind = std::get_if<Kind>(&effect)) found.push_back(*kind);
    return found;
  }
  template <class Message>
  std::vector<Message> sent(LinkId link) const {
    std::vector<Message> found;
    for (const Send& send : all<Send>()) {
      OutFrame frame = send.frame;
      const Bytes bytes = std::move(frame).joined();
      const Frame decoded = decode(bytes).value();
      if (send.link == link && std::holds_alternative<Message>(decoded))
        found.push_back(std::get<Message>(decoded));
    }
    return found;
  }
  std::string complaint() const {
    const auto closed = all<Close>();
    return closed.empty() ? "" : closed.front().reason;
  }
  void clear() { out.clear(); }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(pipeline_replica)

BOOST_AUTO_TEST_CASE(a_step_waits_until_its_rows_count_below) {
  Middle middle;
  middle.through(1, 1);
  middle.through(2, 2);
  BOOST_TEST(middle.all<MakeStep>().empty());
  middle.give(Middle::below, Outcome{1, Outcome::Kind::counted});
  BOOST_TEST(middle.all<MakeStep>().empty());
  BOOST_TEST(middle.sent<Outcome>(Middle::above).size() == 1u);
  middle.give(Middle::below, Outcome{2, Outcome::Kind::counted});
  BOOST_REQUIRE(middle.all<MakeStep>().size() == 1u);
  BOOST_TEST(middle.all<MakeStep>()[0].micro_batches == 2u);
  BOOST_TEST(middle.all<MakeStep>()[0].loss == 0.5f);
  const auto said = middle.sent<Outcome>(Middle::above);
  BOOST_REQUIRE(said.size() == 2u);
  BOOST_TEST((said[1].kind == Outcome::Kind::counted));
}

// Weights may change only in a step: no third micro-batch begins before it.
BOOST_AUTO_TEST_CASE(no_more_micro_batches_take_part_than_a_step_has) {
  Middle middle;
  for (const std::uint64_t i : {1u, 2u, 3u}) middle.activations(i, i);
  middle.made(Middle::body());
  middle.made(Middle::body());
  BOOST_TEST(middle.all<Work>().size() == 2u);
  for (const std::uint64_t i : {1u, 2u}) middle.gradients(i);
  middle.made(Bytes(4, 4));
  middle.made(Bytes(4, 4));
  for (const std::uint64_t i : {1u, 2u}) middle.give(Middle::below, Outcome{i, Outcome::Kind::counted});
  BOOST_TEST(middle.all<Work>().size() == 4u);
  middle.one->begin_step(middle.now, middle.out);
  BOOST_TEST(middle.all<Work>().size() == 5u);
  BOOST_TEST((middle.all<Work>()[4].name == Middle::name(3)));
}

// With overlap the third one begins with the same weights, counts in the next step, and keeps its weights there.
BOOST_AUTO_TEST_CASE(micro_batches_ahead_count_in_the_next_step_with_their_own_weights) {
  Middle middle(2, true);
  for (const std::uint64_t i : {1u, 2u, 3u}) middle.through(i, i);
  const auto before = middle.all<Work>();
  BOOST_REQUIRE(before.size() == 6u);
  BOOST_TEST((before[3].kind == Work::Kind::backward && !before[3].ahead && !before[3].begins_sum));
  BOOST_TEST((before[5].kind == Work::Kind::backward && before[5].ahead && before[5].begins_sum));
  middle.activations(4, 4);
  middle.made(Middle::body());
  for (const std::uint64_t i : {1u, 2u, 3u}) middle.give(Middle::below, Outcome{i, Outcome::Kind::counted});
  BOOST_REQUIRE(middle.all<MakeStep>().size() == 1u);
  BOOST_TEST(middle.all<MakeStep>()[0].micro_batches == 2u);
  BOOST_TEST((middle.all<MakeStep>()[0].ahead == std::vector{Middle::name(3), Middle::name(4)}));
  middle.clear();
  middle.one->begin_step(middle.now, middle.out);
  BOOST_TEST(middle.one->held() == 2u);
  middle.gradients(4);
  BOOST_REQUIRE(middle.all<Work>().size() == 1u);
  const Work last = middle.all<Work>()[0];
  BOOST_TEST((last.name == Middle::name(4) && last.stashed_weights && !last.ahead && !last.begins_sum));
  middle.made(Bytes(4, 4));
  middle.give(Middle::below, Outcome{4, Outcome::Kind::counted});
  BOOST_REQUIRE(middle.all<MakeStep>().size() == 1u);
  BOOST_TEST(middle.all<MakeStep>()[0].ahead.empty());
}

// One of the step is dropped: the one ahead takes its place, and its gradient is made again for this step's sum.
BOOST_AUTO_TEST_CASE(a_micro_batch_ahead_fills_the_step) {
  Middle middle(2, true);
  for (const std::uint64_t i : {1u, 2u, 3u}) middle.through(i, i);
  middle.clear();
  middle.give(Middle::below, Outcome{1, Outcome::Kind::dropped});
  for (int i = 0; i < 2; ++i) {
    const Work work = middle.all<Work>().back();
    BOOST_TEST((work.kind == Work::Kind::backward && !work.ahead && !work.stashed_weights));
    BOOST_TEST((work.name == Middle::name(i == 0 ? 2 : 3) && work.begins_sum == (i == 0)));
    middle.made(Bytes(4, 4));
  }
  for (const std::uint64_t i : {2u, 3u}) middle.give(Middle::below, Outcome{i, Outcome::Kind::counted});
  BOOST_REQUIRE(middle.all<MakeStep>().size() == 1u);
  BOOST_TEST(middle.all<MakeStep>()[0].ahead.empty());
}

// The run is over for a replica once all that are linked below have said so, also where they have gone since.
BOOST_AUTO_TEST_CASE(it_is_over_when_all_below_say_so) {
  Middle middle;
  const LinkId other{3};
  middle.one->on_linked(other, middle.out);
  middle.give(other, middle.stage(1));
  BOOST_TEST(!middle.one->is_over());
  middle.give(Middle::below, Over{});
  BOOST_TEST(!middle.one->is_over());
  middle.one->on_unlinked(Middle::below, middle.now, middle.out);
  BOOST_TEST(!middle.one->is_over());
  middle.give(other, Over{});
  BOOST_TEST(middle.one->is_over());
  middle.one->on_unlinked(other, middle.now, middle.out);
  BOOST_TEST(middle.one->is_over());
  BOOST_TEST(middle.complaint() == "");
  middle.give(Middle::above, Over{});
  BOOST_TEST(middle.complaint() == "sent from above that no more micro-batches come");
}

BOOST_AUTO_TEST_CASE(all_above_hear_that_it_is_over) {
  Middle middle;
  middle.one->say_over(middle.out);
  middle.one->say_over(middle.out);
  BOOST_TEST(middle.sent<Over>(Middle::above).size() == 1u);
  const LinkId later{3};
  middle.one->on_linked(later, middle.out);
  middle.give(later, middle.stage(3));
  BOOST_TEST(middle.sent<Over>(later).size() == 1u);
  BOOST_TEST(middle.sent<Over>(Middle::below).empty());
}

// It sends back what has no answer, gives no credit meanwhile, and takes micro-batches again afterwards.
BOOST_AUTO_TEST_CASE(it_serves_only_while_it_is_told_to) {
  Middle middle;
  middle.activations(1, 1);
  middle.clear();
  middle.one->set_serving(false, middle.now, middle.out);
  middle.one->check_invariants();
  const auto said = middle.sent<Outcome>(Middle::below);
  BOOST_REQUIRE(said.size() == 1u);
  BOOST_TEST((said[0].kind == Outcome::Kind::refused));
  BOOST_TEST(middle.sent<Credit>(Middle::below).empty());
  middle.made(Middle::body());  // of the work that was under way: it goes nowhere
  BOOST_TEST(middle.sent<Activations>(Middle::above).empty());
  middle.one->set_serving(true, middle.now, middle.out);
  BOOST_REQUIRE(middle.sent<Credit>(Middle::below).size() == 1u);
  BOOST_TEST(middle.sent<Credit>(Middle::below)[0].limit == 5u);
}

// Nothing is computed before the weights are there; micro-batches wait.
BOOST_AUTO_TEST_CASE(work_begins_with_the_step) {
  Middle middle(1);
  middle.through(1, 1);
  middle.give(Middle::below, Outcome{1, Outcome::Kind::counted});
  BOOST_REQUIRE(middle.all<MakeStep>().size() == 1u);
  middle.clear();
  middle.activations(2, 2);
  BOOST_TEST(middle.all<Work>().empty());
  middle.one->begin_step(middle.now, middle.out);
  BOOST_TEST(middle.all<Work>().size() == 1u);
  BOOST_TEST(middle.one->figures().counted == 1u);
}

// At the end of a run: what still comes for it makes no step, and a later step takes what did not count.
BOOST_AUTO_TEST_CASE(a_step_that_was_given_up_asks_for_nothing) {
  Middle middle(2);
  middle.through(1, 1);
  middle.through(2, 2);
  middle.give(Middle::below, Outcome{1, Outcome::Kind::counted});
  middle.activations(3, 3);
  middle.clear();
  middle.one->give_up_step();
  middle.one->check_invariants();
  middle.give(Middle::below, Outcome{2, Outcome::Kind::counted});
  middle.activations(4, 4);
  BOOST_TEST(middle.all<MakeStep>().empty());
  BOOST_TEST(middle.all<Work>().empty());
  middle.one->begin_step(middle.now, middle.out);
  middle.one->check_invariants();
  BOOST_TEST(middle.one->held() == 2u);
  BOOST_REQUIRE(middle.all<Work>().size() == 1u);
  BOOST_TEST((middle.all<Work>()[0].kind == Work::Kind::forward && middle.all<Work>()[0].name == Middle::name(3)));
}

BOOST_AUTO_TEST_CASE(a_dropped_gradient_leaves_the_sum) {
  Middle middle(3);
  middle.through(1, 1);
  middle.through(2, 2);
  middle.clear();
  middle.give(Middle::below, Outcome{1, Outcome::Kind::dropped});
  const auto work = middle.all<Work>();
  BOOST_REQUIRE(work.size() == 1u);
  BOOST_TEST((work[0].kind == Work::Kind::backward && work[0].name == Middle::name(2) && work[0].begins_sum));
  BOOST_REQUIRE(middle.sent<Outcome>(Middle::above).size() == 1u);
  BOOST_TEST(middle.sent<Outcome>(Middle::above)[0].transfer == 1u);
  middle.clear();
  middle.made(Bytes(4, 4));
  BOOST_TEST(middle.sent<Gradients>(Middle::below).empty());  // the answer has gone down before
}

// The gradient that is being computed was for a sum that is begun again: it is computed once more.
BOOST_AUTO_TEST_CASE(a_sum_that_is_begun_again_takes_the_running_gradient_once) {
  Middle middle(3);
  middle.through(1, 1);
  middle.activations(2, 2);
  middle.made(Middle::body());
  middle.gradients(2);
  middle.clear();
  middle.give(Middle::below, Outcome{1, Outcome::Kind::dropped});
  BOOST_TEST(middle.all<Work>().empty());
  middle.made(Bytes(4, 4));
  BOOST_TEST(middle.sent<Gradients>(Middle::below).size() == 1u);
  BOOST_REQUIRE(middle.all<Work>().size() == 1u);
  BOOST_TEST((middle.all<Work>()[0].begins_sum && middle.all<Work>()[0].name == Middle::name(2)));
}

BOOST_AUTO_TEST_CASE(a_lost_lower_link_takes_its_rows_along) {
  Middle middle(3);
  middle.through(1, 1);
  middle.activations(2, 2);
  middle.clear();
  middle.one->on_unlinked(Middle::below, middle.now, middle.out);
  BOOST_TEST(middle.one->held() == 0u);
  BOOST_TEST(middle.sent<Outcome>(Middle::above).size() == 1u);
  middle.made(Middle::body());  // the forward pass that was running
  BOOST_TEST(middle.one->held() == 0u);
  middle.one->check_invariants();
}

BOOST_AUTO_TEST_CASE(rows_that_counted_before_are_refused) {
  Middle middle(1);
  middle.through(1, 1);
  middle.give(Middle::below, Outcome{1, Outcome::Kind::counted});
  middle.one->begin_step(middle.now, middle.out);
  middle.clear();
  middle.activations(2, 1);
  BOOST_TEST(middle.all<Work>().empty());
  BOOST_REQUIRE(middle.sent<Outcome>(Middle::below).size() == 1u);
  BOOST_TEST((middle.sent<Outcome>(Middle::below)[0].kind == Outcome::Kind::dropped));
  BOOST_TEST(middle.sent<Credit>(Middle::below).size() == 1u);  // there is room for others
  BOOST_TEST(middle.one->figures().repeats == 1u);
}

// Two lower neighbours send the same rows, as after a link that one side still believes in. One counts.
BOOST_AUTO_TEST_CASE(of_two_copies_one_counts) {
  Middle middle(2);
  middle.through(1, 1);
  middle.through(2, 1);
  middle.give(Middle::below, Outcome{2, Outcome::Kind::counted});
  middle.give(Middle::below, Outcome{1, Outcome::Kind::counted});
  BOOST_TEST(middle.one->held() == 1u);
  BOOST_TEST(middle.all<MakeStep>().empty());
}

// Nobody is above: the rows go back at once, and no more are taken until somebody is.
BOOST_AUTO_TEST_CASE(a_replica_without_upper_neighbours_refuses) {
  Middle middle;
  middle.activations(1, 1);
  middle.made(Middle::body());
  middle.clear();
  middle.one->on_unlinked(Middle::above, middle.now, middle.out);
  BOOST_TEST(middle.one->held() == 0u);
  BOOST_REQUIRE(middle.sent<Outcome>(Middle::below).size() == 1u);
  BOOST_TEST((middle.sent<Outcome>(Middle::below)[0].kind == Outcome::Kind::refused));
  for (const std::uint64_t i : {2u, 3u, 4u}) middle.activations(i, i);
  BOOST_TEST(middle.sent<Outcome>(Middle::below).size() == 4u);
  BOOST_TEST(middle.sent<Credit>(Middle::below).empty());
  BOOST_TEST(middle.all<Work>().empty());
  const LinkId fresh{3};
  middle.one->on_linked(fresh, middle.out);
  middle.give(fresh, middle.stage(3));
  BOOST_REQUIRE(middle.sent<Credit>(Middle::below).size() == 1u);
  BOOST_TEST(middle.sent<Credit>(Middle::below)[0].limit == 8u);
}

BOOST_AUTO_TEST_CASE(a_refused_micro_batch_goes_to_another_neighbour) {
  Middle middle;
  const LinkId other{3};
  middle.activations(1, 1);
  middle.made(Middle::body());
  middle.one->on_linked(other, middle.out);
  middle.give(other, middle.stage(3));
  middle.give(other, Credit{4});
  middle.clear();
  middle.give(Middle::above, Outcome{1, Outcome::Kind::refused});
  BOOST_TEST(middle.sent<Activations>(other).size() == 1u);
  BOOST_TEST(middle.sent<Activations>(Middle::above).empty());
}

BOOST_AUTO_TEST_CASE(a_drop_from_above_goes_down) {
  Middle middle;
  middle.activations(1, 1);
  middle.made(Middle::body());
  middle.clear();
  middle.give(Middle::above, Outcome{1, Outcome::Kind::dropped});
  BOOST_TEST(middle.one->held() == 0u);
  BOOST_TEST(middle.sent<Outcome>(Middle::below).size() == 1u);
}

BOOST_AUTO_TEST_CASE(what_has_no_place_closes_the_link) {
  const auto complaint = [](auto act) {
    Middle middle;
    act(middle);
    BOOST_TEST(middle.one->held() == 0u);
    return middle.complaint();
  };
  BOOST_TEST(complaint([](Middle& m) { m.give(Middle::above, m.stage(3)); }) == "sent a second stage");
  BOOST_TEST(complaint([](Middle& m) { m.give(Middle::above, Ping{}); }) ==
             "sent a frame that has no place between stages");
  BOOST_TEST(complaint([](Middle& m) { m.give(Middle::below, Credit{1}); }) == "sent a credit from below");
  BOOST_TEST(complaint([](Middle& m) { m.give(Middle::above, Credit{99}); }) == "sent a credit that falls");
  BOOST_TEST(complaint([](Middle& m) { m.give(Middle::above, Credit{5'000}); }) ==
             "sent a credit that rises too far");
  BOOST_TEST(complaint([](Middle& m) { m.activations(2, 1); }) == "sent a transfer out of turn");
  BOOST_TEST(complaint([](Middle& m) {
               for (std::uint64_t i = 1; i <= 5; ++i) m.activations(i, i);
               m.made(Middle::body());
             }) == "sent a transfer beyond its credit");
  BOOST_TEST(
      complaint([](Middle& m) {
        const Bytes bytes(9);
        m.give(Middle::below, Activations{1, ActivationsBegin{Middle::name(1), 2, 4, 9}, bytes, false});
      }) == "sent a transfer that is too long");
  BOOST_TEST(complaint([](Middle& m) { m.gradients(1); }) == "sent an answer to no question");
  BOOST_TEST(complaint([](Middle& m) {
               m.give(Middle::above, Outcome{1, Outcome::Kind::counted});
             }) == "sent from above that rows count");
  BOOST_TEST(complaint([](Middle& m) {
               m.give(Middle::below, Outcome{1, Outcome::Kind::counted});
             }) == "sent the outcome of nothing");
  BOOST_TEST(complaint([](Middle& m) {
               m.activations(1, 1);
               m.give(Middle::below, Outcome{1, Outcome::Kind::counted});
             }) == "sent that it counted rows without an answer");
}

BOOST_AUTO_TEST_CASE(an_answer_of_another_length_is_no_answer) {
  Middle middle;
  middle.activations(1, 1);
  middle.made(Middle::body());
  middle.gradients(1, 5);
  BOOST_TEST(middle.complaint() == "sent an answer of a wrong length");
  // Nobody else is above.
  BOOST_REQUIRE(middle.sent<Outcome>(Middle::below).size() == 1u);
  BOOST_TEST((middle.sent<Outcome>(Middle::below)[0].kind == Outcome::Kind::refused));
}

BOOST_AUTO_TEST_CASE(only_neighbours_of_the_same_pipeline_are_met) {
  const LinkId third{3};
  const auto complaint = [&](auto change) {
    Middle middle;
    middle.one->on_linked(third, middle.out);
    Stage stage = middle.stage(3);
    change(stage);
    middle.give(third, stage);
    return middle.complaint();
  };
  BOOST_TEST(complaint([](Stage&) {}) == "");
  BOOST_TEST(complaint([](Stage& s) { s.pipeline.bytes[0] = 1; }) == "sent the stage of another pipeline");
  BOOST_TEST(complaint([](Stage& s) { s.stages = 4; }) == "sent the stage of another pipeline");
  BOOST_TEST(complaint([](Stage& s) { s.numbers = 2; }) == "sent the stage of another pipeline");
  BOOST_TEST(complaint([](Stage& s) { s.stage = 2; }) == "sent a stage that is no neighbour of ours");
  Middle middle;
  middle.one->on_linked(third, middle.out);
  middle.give(third, Credit{1});
  BOOST_TEST(middle.complaint() == "sent a frame before its stage");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::gossip::test
