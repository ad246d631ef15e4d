// Probes in the lane of DATA, against PINGs in the control lane: the waits they measure, and the links that count.
#include "gossip/broadcast/queue_probe.h"

#include <boost/test/unit_test.hpp>

#include "runtime/sim/world/tag_keys.h"
#include "tests/unit/gossip/fake_store.h"

using namespace rumor;
using namespace rumor::gossip;

namespace {

// A node with links that answer PINGs as their rule says; it makes an update each 20 ms and sends DATA all the time.
struct Origin {
  struct Rule {
    Duration control{}, waits{};   // a PING's round trip; what a probe takes beyond it
    Duration grows_each_second{};  // of `waits`
    bool answers = true;
  };

  explicit Origin(std::vector<Rule> rules_in) : rules(std::move(rules_in)) {
    for (std::size_t i = 0; i < rules.size(); ++i) {
      Link& link = core.links[LinkId{i}];
      link.id = LinkId{i};
      link.state = Link::State::admitted;
      link.overlay = std::make_unique<OverlayLink>();
      link.exchange = std::make_unique<BroadcastLink>();
    }
  }

  static Options options() {
    Options made;
    made.self.bytes[0] = 1;
    made.keys = std::make_shared<sim::TagKeys>(made.self);
    return made;
  }

  void run_for(Duration time) {
    const TimePoint end = now + time;
    for (; now < end; now += 10ms) {
      Outbox out;
      core.begin(now, out);
      if (now.time_since_epoch() % 20ms == Duration{0}) publish();
      for (auto& [id, link] : core.links) link.live_sent = true;
      if (probe.due() <= now) probe.tick();
      for (auto at = answers.begin(); at != answers.end() && at->first <= now; at = answers.erase(at)) {
        Link& link = core.links.at(at->second.first);
        if (!probe.on_pong(link, at->second.second)) overlay.on_pong(link, at->second.second);
      }
      core.end();
      answer(out);
    }
  }

  std::optional<Duration> data_wait(std::uint64_t link) { return parts(core.links.at(LinkId{link})).probe.data_wait; }

  void publish() {
    state.pace.published(++made, 1000, 3, now);
    probe.published();
  }

  void answer(const Outbox& out) {
    for (const Effect& effect : out) {
      const Send* send = std::get_if<Send>(&effect);
      if (send == nullptr) continue;
      const Result<Frame> frame = decode(send->frame.head);
      BOOST_REQUIRE(frame.ok());
      const Ping* ping = std::get_if<Ping>(&*frame);
      BOOST_REQUIRE(ping != nullptr);
      const Rule& rule = rules[static_cast<std::size_t>(send->link)];
      if (!rule.answers) continue;
      Duration takes = rule.control;
      if (send->lane == Lane::live) takes += rule.waits + rule.grows_each_second * (now.time_since_epoch() / 1s);
      answers.emplace(now + takes, std::pair(send->link, Pong{ping->nonce}));
      ++(send->lane == Lane::live ? probes : pings);
    }
  }

  std::vector<Rule> rules;
  gossip::test::FakeStore store;
  Core core{options(), store, Prng(1)};
  Overlay overlay{core};
  BroadcastState state{core};
  QueueProbe probe{state, overlay};
  TimePoint now{1s};
  std::multimap<TimePoint, std::pair<LinkId, Pong>> answers;
  std::uint64_t made = 0, probes = 0, pings = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(queue_probe)

BOOST_AUTO_TEST_CASE(what_data_waits_is_what_a_probe_takes_beyond_a_ping) {
  Origin origin({{100ms, 0ms}, {100ms, 50ms}, {400ms, 350ms}});
  origin.run_for(5s);
  BOOST_TEST((origin.data_wait(0) == 0ms));
  BOOST_TEST((origin.data_wait(1) == 50ms));
  BOOST_TEST((origin.data_wait(2) == 350ms));
  BOOST_TEST((origin.core.links.at(LinkId{2}).round_trip == 400ms));
  BOOST_TEST((origin.state.pace.interval() == Duration{0}));  // one of three
  BOOST_TEST(origin.probes == origin.pings);
  BOOST_TEST(origin.probes > 30u);
  BOOST_TEST(origin.probes < 60u);
}

BOOST_AUTO_TEST_CASE(a_queue_that_grows_is_noticed_however_long_the_path) {
  for (const Duration path : {Duration{1ms}, Duration{100ms}, Duration{300ms}, Duration{800ms}}) {
    BOOST_TEST_CONTEXT(path.count() << " us") {
      Origin origin({{path, 0ms, 100ms}, {path, 0ms, 100ms}});
      origin.run_for(10s);
      BOOST_TEST((origin.state.pace.interval() > 20ms));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_processor_that_is_late_with_everything_holds_nothing_back) {
  Origin origin({{900ms, 0ms}, {700ms, 0ms}, {1500ms, 0ms}});
  origin.run_for(20s);
  BOOST_TEST((origin.state.pace.interval() == Duration{0}));
}

BOOST_AUTO_TEST_CASE(who_answers_nothing_says_nothing) {
  const Origin::Rule silent{{}, {}, {}, false};
  Origin calm({{100ms, 0ms}, silent, silent, silent});
  calm.run_for(20s);
  BOOST_TEST((calm.state.pace.interval() == Duration{0}));
  Origin late({{100ms, 0ms, 100ms}, silent, silent, silent});
  late.run_for(10s);
  BOOST_TEST((late.state.pace.interval() > 20ms));
  Origin alone({silent, silent});
  alone.run_for(20s);
  BOOST_TEST((alone.state.pace.interval() == Duration{0}));
}

BOOST_AUTO_TEST_CASE(nothing_is_probed_while_nothing_is_published) {
  Origin origin({{100ms, 0ms}});
  origin.run_for(1s);
  BOOST_TEST((origin.probe.due() != never));
  Outbox out;
  origin.core.begin(origin.now + QueueProbe::quiet_after, out);
  origin.probe.tick();
  origin.core.end();
  BOOST_TEST((origin.probe.due() == never));
  BOOST_TEST(out.empty());
}

BOOST_AUTO_TEST_SUITE_END()
