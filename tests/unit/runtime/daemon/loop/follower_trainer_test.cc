// A follower has the run of peers that train: its id and initial weights, without their data.
#include "runtime/daemon/loop/follower_trainer.h"

#include <boost/test/unit_test.hpp>

#include "runtime/daemon/loop/built_in_training.h"
#include "runtime/run/run_identity.h"
#include "tests/unit/contains.h"

using namespace rumor;
using rumor::test::contains;

BOOST_AUTO_TEST_SUITE(follower_trainer)

namespace {

RunConfig preset(const std::string& name) { return parse_run_config(preset_text(name), name).value(); }

}  // namespace

BOOST_AUTO_TEST_CASE(run_and_initial_weights_are_those_of_a_peer_that_trains) {
  daemon::PeerOptions options;
  options.config = preset("synthetic");
  options.shard = {0, 1};
  const auto training = daemon::built_in_training(options, NodeId{});
  const auto following = daemon::follower_training(options.config);
  BOOST_TEST_REQUIRE(training.ok());
  BOOST_TEST_REQUIRE(following.ok());
  BOOST_TEST((run_id(options.config, training->trainer->layout()) ==
              run_id(options.config, following->trainer->layout())));
  BOOST_TEST((training->trainer->initial_weights() == following->trainer->initial_weights()));
  BOOST_TEST(training->model_json == following->model_json);
}

BOOST_AUTO_TEST_CASE(no_data_are_needed) {
  RunConfig config = preset("text-gpt");
  config.data.path = "/nowhere";
  BOOST_TEST(daemon::follower_training(config).ok());
  config = preset("fashion-cnn");
  config.data.path = "/nowhere";
  BOOST_TEST(daemon::follower_training(config).ok());
}

BOOST_AUTO_TEST_CASE(the_state_of_a_peer_that_trains_is_refused) {
  const auto following = daemon::follower_training(preset("synthetic"));
  std::vector<float> residual(following->trainer->layout().params());
  BOOST_TEST(following->trainer->restore(residual, {}).ok());
  residual[7] = 0.1f;
  const auto refused = following->trainer->restore(residual, {});
  BOOST_TEST_REQUIRE(!refused.ok());
  BOOST_TEST((refused.error().code == Errc::mismatch));
  BOOST_TEST(contains(refused.error().text, "a peer that trains"));
}

BOOST_AUTO_TEST_SUITE_END()
