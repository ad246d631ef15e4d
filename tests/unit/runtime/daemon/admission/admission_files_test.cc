// Tokens, revocations and lists as files.
#include "runtime/daemon/admission/admission_files.h"

#include <boost/test/unit_test.hpp>
#include <fstream>

#include "runtime/daemon/admission/peer_admission.h"
#include "tests/unit/scratch_folder.h"

namespace rumor::daemon {

namespace {

using rumor::Scratch;

SigningKey key_of(std::uint8_t number) {
  SigningKey::Seed seed{};
  seed.fill(number);
  return SigningKey(seed);
}

class Judge final : public gossip::Keys {
 public:
  Signature sign(BytesView) const override { return {}; }
  bool verify(const NodeId& node, BytesView message, const Signature& signature) const override {
    return rumor::verify(node, message, signature);
  }
};

RunId run_named(std::uint8_t number) {
  RunId run;
  run.bytes.fill(number);
  return run;
}

JoinToken some_token() {
  gossip::Token terms;
  terms.run = run_named(3);
  terms.uses_max = 5;
  SigningKey::Seed secret{};
  secret.fill(9);
  return make_token(key_of(1), terms, secret);
}

void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::trunc) << text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(admission_files)

BOOST_AUTO_TEST_CASE(a_token_survives_its_text_and_admits) {
  const std::string text = token_text(some_token());
  const auto token = parse_token("\n " + text + " \n", "t.tok");
  BOOST_REQUIRE(token.ok());
  const Judge judge;
  gossip::AdmissionRule rule{false, {}, {}, key_of(1).id()};
  const NodeId joiner = key_of(4).id();
  const Bytes shown = use_token(*token, run_named(3), joiner).encode();
  BOOST_TEST(gossip::judge(rule, joiner, shown, {judge, run_named(3), 0, 0, false}).ok());
  BOOST_TEST(!gossip::judge(rule, key_of(5).id(), shown, {judge, run_named(3), 0, 0, false}).ok());
  // The credential that the joiner shows does not contain the secret.
  BOOST_TEST(
      (std::search(shown.begin(), shown.end(), token->secret.begin(), token->secret.end()) == shown.end()));
}

BOOST_AUTO_TEST_CASE(damaged_tokens_are_refused) {
  const std::string text = token_text(some_token());
  for (const std::string& bad :
       {std::string(), std::string("rumor-token-1 "), text.substr(0, text.size() - 3),
        "rumor-token-2" + text.substr(13), text.substr(0, 40) + "zz" + text.substr(42),
        text.substr(0, text.size() - 1) + "00"}) {
    const auto token = parse_token(bad, "t.tok");
    BOOST_REQUIRE(!token.ok());
    BOOST_TEST((token.error().code == Errc::usage));
    BOOST_TEST(token.error().text.find("t.tok") == 0u);
  }
  std::string other_secret = text;
  other_secret[text.size() - 2] = other_secret[text.size() - 2] == '0' ? '1' : '0';
  BOOST_TEST(parse_token(other_secret, "t.tok").error().text.find("do not belong together") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(revocations_survive_their_text) {
  const NodeId bad = key_of(6).id();
  const auto all = make_revocation(key_of(1), run_named(3), {bad, {}, {1, gossip::seq_max}, {}});
  const auto some = make_revocation(key_of(1), run_named(3), {bad, gossip::stream_of(bad, 4), {2, 9}, {}});
  const auto read =
      parse_revocations("# two\n" + revocation_text(all) + "\n" + revocation_text(some), "r.txt");
  BOOST_REQUIRE(read.ok());
  BOOST_TEST((*read == std::vector<gossip::Revocation>{all, some}));
  const Judge judge;
  BOOST_TEST(gossip::revocation_is_signed(judge, run_named(3), key_of(1).id(), all));
  BOOST_TEST(gossip::revocation_is_signed(judge, run_named(3), key_of(1).id(), some));
  BOOST_TEST(!gossip::revocation_is_signed(judge, run_named(4), key_of(1).id(), all));
  BOOST_TEST(!gossip::revocation_is_signed(judge, run_named(3), key_of(2).id(), all));
  const auto wrong = parse_revocations("\nrumor-revocation-1 00\n", "r.txt");
  BOOST_REQUIRE(!wrong.ok());
  BOOST_TEST(wrong.error().text.find("r.txt: line 2") == 0u);
}

BOOST_AUTO_TEST_CASE(lists_are_changed_in_place) {
  const std::string a = key_of(1).id().hex(), b = key_of(2).id().hex();
  std::string text = "# who\n" + a + "  # Ann\n";
  text = with_key(text, key_of(2).id(), true, "Bob");
  BOOST_TEST(text == "# who\n" + a + "  # Ann\n" + b + "  # Bob\n");
  text = with_key(text, key_of(1).id(), false, "unused");
  BOOST_TEST(text == "# who\n-" + a + "  # Ann\n" + b + "  # Bob\n");
  text = with_key(text, key_of(1).id(), true, "");
  BOOST_TEST(text == "# who\n" + a + "  # Ann\n" + b + "  # Bob\n");
}

BOOST_AUTO_TEST_CASE(a_peer_follows_its_files) {
  Scratch folder;
  const std::string list = folder.path("allowed.txt"), token = folder.path("t.tok");
  RunConfig config;
  BOOST_TEST(PeerAdmission::open(config, "")->rule().everyone);
  config.owner = key_of(1).id().hex();
  BOOST_TEST(!PeerAdmission::open(config, "")->rule().everyone);
  config.allow = list;
  BOOST_TEST((PeerAdmission::open(config, "").error().code == Errc::not_found));
  write(list, key_of(2).id().hex() + "\n");
  write(token, token_text(some_token()));
  config.token = token;
  auto admission = PeerAdmission::open(config, folder.path(""));
  BOOST_REQUIRE(admission.ok());
  BOOST_TEST((admission->rule().allowed == std::set<NodeId>{key_of(2).id()}));
  BOOST_TEST((admission->rule().owner == key_of(1).id()));
  BOOST_TEST(!admission->look().rule);
  write(list, key_of(2).id().hex() + "\n-" + key_of(3).id().hex() + "\n");
  BOOST_TEST(admission->look().rule);
  BOOST_TEST((admission->rule().refused == std::set<NodeId>{key_of(3).id()}));
  write(list, "nonsense\n");
  const PeerAdmission::News news = admission->look();
  BOOST_TEST(!news.rule);
  BOOST_REQUIRE(news.complaints.size() == 1u);
  BOOST_TEST(news.complaints[0].find("line 1") != std::string::npos);
  BOOST_TEST((admission->rule().refused == std::set<NodeId>{key_of(3).id()}));  // as it was

  BOOST_TEST(admission->trouble(run_named(3)).empty());
  BOOST_TEST(!admission->trouble(run_named(4)).empty());
  gossip::Admit confirmed = gossip::Admit::decode(admission->admit(key_of(4).id())).value();
  confirmed.by = key_of(2).id();
  BOOST_REQUIRE(admission->keep(confirmed.encode()).ok());
  const auto again =
      PeerAdmission::open(RunConfig{}, folder.path(""));  // the token's file may be gone by now
  BOOST_TEST((again->admit(key_of(4).id()) == confirmed.encode()));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::daemon
