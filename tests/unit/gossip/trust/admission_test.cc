// Admission: lists; tokens that are good, expired, spent, of another run, or relayed; and the links after a change of
// the list.
#include "gossip/trust/admission.h"

#include <boost/test/unit_test.hpp>

#include "gossip/asio/identity.h"
#include "runtime/base/limits.h"
#include "tests/unit/gossip/world.h"

namespace rumor::gossip {

namespace {

using test::run_named;
using test::World;

SigningKey key_of(std::uint8_t number) {
  SigningKey::Seed seed{};
  seed.fill(number);
  return SigningKey(seed);
}

// Real signatures, as the daemon judges them.
class RealKeys final : public Keys {
 public:
  explicit RealKeys(SigningKey key) : key_(std::move(key)) {}
  Signature sign(BytesView message) const override { return key_.sign(message); }
  bool verify(const NodeId& node, BytesView message, const Signature& signature) const override {
    return rumor::verify(node, message, signature);
  }

 private:
  SigningKey key_;
};

struct Court {
  SigningKey owner = key_of(1), token_key = key_of(2), joiner = key_of(3), member = key_of(4);
  RealKeys keys{key_of(4)};
  RunId run = run_named(1);
  AdmissionRule rule{false, {}, {}, owner.id()};
  JudgeView view{keys, run, 1'000'000, 0, false};

  Token token() const { return {run, token_key.id(), Role::train, 0, 0, {}, {}}; }
  Admit admit(Token terms) const {
    terms.owner = owner.sign(token_message(terms));
    return {terms, token_key.sign(use_message(run, joiner.id())), {}, {}};
  }
  std::string verdict(const Admit& admit) const {
    const auto judged = judge(rule, joiner.id(), admit.encode(), view);
    if (!judged.ok()) BOOST_TEST((judged.error().code == Errc::mismatch));
    return judged.ok() ? "admitted" : judged.error().text;
  }
};

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(admission)

BOOST_AUTO_TEST_CASE(a_list_is_read_as_people_write_it) {
  const std::string a = key_of(7).id().hex(), b = key_of(8).id().hex();
  const auto rule = parse_allow_list("# friends\n\n  " + a + "  # Ann\r\n-" + b + "\n", "allowed.txt");
  BOOST_REQUIRE(rule.ok());
  BOOST_TEST(!rule->everyone);
  BOOST_TEST((rule->allowed == std::set<NodeId>{key_of(7).id()}));
  BOOST_TEST((rule->refused == std::set<NodeId>{key_of(8).id()}));
  for (const std::string& bad :
       {a.substr(1), a + "0", std::string(64, 'g'), "-" + a.substr(2), std::string(64, '0')}) {
    const auto wrong = parse_allow_list("\n" + bad, "allowed.txt");
    BOOST_REQUIRE(!wrong.ok());
    BOOST_TEST((wrong.error().code == Errc::usage));
    BOOST_TEST(says(wrong.error().text, "allowed.txt: line 2"));
  }
}

BOOST_AUTO_TEST_CASE(a_good_token_admits) {
  const Court court;
  BOOST_TEST(court.verdict(court.admit(court.token())) == "admitted");
  const auto judged = judge(court.rule, court.joiner.id(), court.admit(court.token()).encode(), court.view);
  BOOST_TEST(judged->countersign);
  BOOST_TEST((judged->role == Role::train));
  Token observer = court.token();
  observer.role = Role::observe;
  BOOST_TEST((judge(court.rule, court.joiner.id(), court.admit(observer).encode(), court.view)->role ==
              Role::observe));
}

// Somebody who saw what the joiner showed shows it himself.
BOOST_AUTO_TEST_CASE(a_relayed_token_is_refused) {
  const Court court;
  const Bytes shown = court.admit(court.token()).encode();
  const auto judged = judge(court.rule, court.member.id(), shown, court.view);
  BOOST_REQUIRE(!judged.ok());
  BOOST_TEST(says(judged.error().text, "somebody who does not hold it"));
  BOOST_TEST(admit_is_sound(court.keys, court.run, court.owner.id(), court.joiner.id(), shown));
  BOOST_TEST(!admit_is_sound(court.keys, court.run, court.owner.id(), court.member.id(), shown));
}

BOOST_AUTO_TEST_CASE(tokens_that_do_not_fit_are_refused_with_the_reason) {
  Court court;
  Token token = court.token();
  token.run = run_named(2);
  BOOST_TEST(says(court.verdict(court.admit(token)), "for another run"));
  token = court.token();
  token.node = court.member.id();
  BOOST_TEST(says(court.verdict(court.admit(token)), "for another key"));
  token.node = court.joiner.id();
  BOOST_TEST(court.verdict(court.admit(token)) == "admitted");
  token = court.token();
  token.not_after = 999'999;
  BOOST_TEST(says(court.verdict(court.admit(token)), "expired"));
  token.not_after = 1'000'000;
  BOOST_TEST(court.verdict(court.admit(token)) == "admitted");
  token = court.token();
  token.uses_max = 2;
  court.view.uses = 1;
  BOOST_TEST(court.verdict(court.admit(token)) == "admitted");
  court.view.uses = 2;
  BOOST_TEST(says(court.verdict(court.admit(token)), "used up"));
}

// Each field of the token is under the owner's signature.
BOOST_AUTO_TEST_CASE(an_altered_token_is_refused) {
  const Court court;
  const Admit good = court.admit(court.token());
  const auto altered = [&](auto change) {
    Admit admit = good;
    change(admit);
    return court.verdict(admit);
  };
  const std::string unsigned_text = "not signed by the run's owner";
  BOOST_TEST(says(altered([](Admit& a) { a.token.uses_max = 9; }), unsigned_text));
  BOOST_TEST(says(altered([](Admit& a) { a.token.not_after = 9'000'000; }), unsigned_text));
  BOOST_TEST(says(altered([](Admit& a) { a.token.role = Role::observe; }), unsigned_text));
  BOOST_TEST(says(altered([&](Admit& a) { a.token.id = court.joiner.id(); }), unsigned_text));
  BOOST_TEST(says(altered([&](Admit& a) { a.token.node = court.joiner.id(); }), unsigned_text));
  BOOST_TEST(says(altered([](Admit& a) { a.token.owner.bytes[3] ^= 1; }), unsigned_text));
  BOOST_TEST(says(altered([](Admit& a) { a.use.bytes[3] ^= 1; }), "does not hold it"));
}

// Whoever was admitted in time stays a member, if a member says so.
BOOST_AUTO_TEST_CASE(a_confirmed_token_outlives_its_end) {
  Court court;
  Token token = court.token();
  token.not_after = 5;
  Admit admit = court.admit(token);
  admit.by = court.member.id();
  admit.by_signature = court.member.sign(admit_message(court.run, court.joiner.id(), token.id));
  BOOST_TEST(says(court.verdict(admit), "expired"));  // by somebody we do not know
  court.view.admitter_known = true;
  BOOST_TEST(court.verdict(admit) == "admitted");
  admit.by_signature.bytes[0] ^= 1;
  BOOST_TEST(says(court.verdict(admit), "expired"));
  BOOST_TEST(!admit_is_sound(court.keys, court.run, court.owner.id(), court.joiner.id(), admit.encode()));
}

BOOST_AUTO_TEST_CASE(lists_and_owners_need_no_token) {
  Court court;
  BOOST_TEST(judge(court.rule, court.owner.id(), {}, court.view).ok());
  BOOST_TEST(
      says(judge(court.rule, court.joiner.id(), {}, court.view).error().text, court.joiner.id().hex()));
  court.rule.allowed.insert(court.joiner.id());
  BOOST_TEST(judge(court.rule, court.joiner.id(), {}, court.view).ok());
  court.rule.refused.insert(court.joiner.id());  // stronger, also than a token
  BOOST_TEST(!judge(court.rule, court.joiner.id(), court.admit(court.token()).encode(), court.view).ok());
  const AdmissionRule open;
  BOOST_TEST(judge(open, court.joiner.id(), {}, court.view).ok());
}

BOOST_AUTO_TEST_CASE(damaged_bytes_are_no_token) {
  const Court court;
  Token token = court.token();
  token.node = court.joiner.id();
  Admit admit = court.admit(token);
  admit.by = court.member.id();
  const Bytes whole = admit.encode();
  BOOST_TEST(whole.size() <= limits::admit_bytes_max);
  BOOST_TEST(Admit::decode(whole).ok());
  BOOST_TEST((Admit::decode(whole)->encode() == whole));
  for (std::size_t size = 0; size < whole.size(); ++size)
    BOOST_TEST(!Admit::decode(BytesView(whole).first(size)).ok());
  Bytes longer = whole;
  longer.push_back(0);
  BOOST_TEST(!Admit::decode(longer).ok());
}

// ---- links ----

BOOST_AUTO_TEST_CASE(a_stranger_learns_nothing_and_is_told_why) {
  World world(2, 5);
  world.rules[0] = {false, {}, {}, {}};  // nobody
  world.start(0, {});
  world.start(1, {"n0"});
  world.run_for(1s);
  BOOST_TEST(world.nodes[0].protocol->peers().empty());
  BOOST_TEST(says(world.nodes[1].protocol->refused_by_run(),
                  "does not admit this peer: key " + world.nodes[1].id.hex()));
  // Not even a greeting: all it got, try after try, is the refusal.
  BOOST_TEST(!world.sent_to(1).empty());
  for (const std::uint8_t type : world.sent_to(1))
    BOOST_TEST(int{type} == static_cast<int>(FrameType::reject));
}

BOOST_AUTO_TEST_CASE(a_stranger_that_was_dialled_first_is_told_as_well) {
  World world(2, 5);
  world.rules[0] = {false, {}, {}, {}};  // nobody
  world.start(1, {"n0"});
  world.run_for(3s);  // nobody answers there, so it waits before it dials again
  world.start(0, {"n1"});
  world.run_for(20s);
  BOOST_TEST(world.nodes[0].protocol->peers().empty());
  BOOST_TEST(says(world.nodes[1].protocol->refused_by_run(), "does not admit this peer"));
}

BOOST_AUTO_TEST_CASE(who_is_on_the_list_is_linked_until_it_is_taken_off) {
  World world(3, 6);
  for (std::size_t i = 0; i < 3; ++i) {
    world.rules[i].everyone = false;
    for (const auto& node : world.nodes) world.rules[i].allowed.insert(node.id);
  }
  world.start_all();
  world.run_for(2s);
  BOOST_TEST(world.link_count() == 3u);
  world.publish(2);
  world.run_for(1s);
  BOOST_TEST(world.all_equal());

  const StreamId old_stream = world.nodes[2].stream;
  AdmissionRule without = world.rules[0];
  without.allowed.erase(world.nodes[2].id);
  for (std::size_t i = 0; i < 2; ++i) world.set_rule(i, without);
  world.run_for(2s);
  BOOST_TEST(world.link_count() == 1u);
  // Its earlier updates stay; a new stream of it is not taken from any link.
  BOOST_TEST(world.nodes[0].store->have().contains({old_stream, 1}));
  const StreamId fresh = stream_of(world.nodes[2].id, 99);
  StoredUpdate update = world.nodes[2].store->compose(fresh, world.nodes[2].id, 1, 50);
  world.inject(1, 0, encode(StreamDef{0, fresh, world.nodes[2].id}));
  world.inject(1, 0, encode(Have{{{0, 1}}}));
  world.inject(1, 0, encode(Data{0, update.header, *update.payload, Coding::canonical}));
  world.run_for(1s);
  BOOST_TEST(!world.nodes[0].store->have().contains({fresh, 1}));
  BOOST_TEST(world.link_count() == 1u);  // who passed it on may not have heard yet
}

// The joiner comes by a token to one node; its confirmed record lets all others know.
BOOST_AUTO_TEST_CASE(a_token_joins_the_whole_mesh) {
  World world(4, 7);
  NodeId owner = world.nodes[0].id, token_id;
  token_id.bytes.fill(0x77);
  for (std::size_t i = 0; i < 4; ++i) world.rules[i] = {false, {}, {}, owner};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) world.rules[i].allowed.insert(world.nodes[j].id);
  for (std::size_t j = 0; j < 3; ++j) world.rules[3].allowed.insert(world.nodes[j].id);
  Token token{run_named(1), token_id, Role::train, 1, 0, {}, {}};
  token.owner = sim::TagKeys(owner).sign(token_message(token));
  world.admits[3] = Admit{
      token,
      sim::TagKeys(token_id).sign(use_message(run_named(1), world.nodes[3].id)),
      {},
      {}}.encode();
  world.start_all();
  world.run_for(5s);
  BOOST_TEST(world.link_count() == 6u);
  const auto own = Admit::decode(world.nodes[3].protocol->own_admit());
  BOOST_REQUIRE(own.ok());
  BOOST_TEST(own->by.has_value());
}

BOOST_AUTO_TEST_CASE(a_token_for_one_admits_one) {
  World world(3, 8);
  NodeId owner = world.nodes[0].id, token_id;
  token_id.bytes.fill(0x77);
  Token token{run_named(1), token_id, Role::train, 1, 0, {}, {}};
  token.owner = sim::TagKeys(owner).sign(token_message(token));
  world.rules[0] = {false, {}, {}, owner};
  for (std::size_t i = 1; i < 3; ++i) {
    world.rules[i] = {true, {}, {}, owner};
    world.admits[i] = Admit{
        token,
        sim::TagKeys(token_id).sign(use_message(run_named(1), world.nodes[i].id)),
        {},
        {}}.encode();
  }
  world.start(0, {});
  world.start(1, {"n0"});
  world.run_for(1s);
  world.start(2, {"n0"});
  world.run_for(1s);
  BOOST_TEST(world.nodes[0].protocol->peers().size() == 1u);
  BOOST_TEST(says(world.nodes[2].protocol->refused_by_run(), "used up"));
}

// It reads along, and nothing of its own enters.
BOOST_AUTO_TEST_CASE(an_observer_brings_no_updates) {
  World world(2, 9);
  NodeId owner = world.nodes[0].id, token_id;
  token_id.bytes.fill(0x77);
  Token token{run_named(1), token_id, Role::observe, 0, 0, {}, {}};
  token.owner = sim::TagKeys(owner).sign(token_message(token));
  world.rules[0] = {false, {}, {}, owner};
  world.admits[1] = Admit{
      token,
      sim::TagKeys(token_id).sign(use_message(run_named(1), world.nodes[1].id)),
      {},
      {}}.encode();
  world.rules[1].owner = owner;
  world.start(0, {});
  world.start(1, {"n0"});
  world.run_for(1s);
  world.publish(0);
  world.run_for(1s);
  BOOST_TEST(world.nodes[1].store->have().count() == 1u);
  world.publish(1);
  world.run_for(1s);
  BOOST_TEST(world.nodes[0].store->have().count() == 1u);
  BOOST_TEST(says(world.nodes[0].closes.back(), "may only observe"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::gossip
