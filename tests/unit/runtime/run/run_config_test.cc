#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <map>

#include "runtime/base/text.h"
#include "runtime/run/run_config.h"
#include "runtime/run/run_identity.h"
#include "tests/unit/contains.h"
#include "tests/unit/runtime/run/error_of.h"
#include "tests/unit/runtime/support.h"

using namespace rumor;

namespace {

using rumor::test::contains;
using rumor::test::error_of;

}  // namespace

BOOST_AUTO_TEST_CASE(every_preset_parses) {
  BOOST_TEST(!preset_names().empty());
  for (const std::string& name : preset_names()) {
    const auto config = parse_run_config(preset_text(name), name);
    BOOST_REQUIRE_MESSAGE(config.ok(), name);
    BOOST_TEST(config->name == name);
  }
  BOOST_TEST(preset_text("no-such-preset").empty());
}

BOOST_AUTO_TEST_CASE(an_unknown_key_names_the_nearest_and_the_line) {
  const std::string text = error_of("[compress]\ndensitty = 0.1\n");
  BOOST_TEST(contains(text, "run.toml: line 2"));
  BOOST_TEST(contains(text, "did you mean compress.density"));
  BOOST_TEST(contains(error_of("[optimizer]\ndensity = 0.1\n"), "did you mean compress.density"));
}

BOOST_AUTO_TEST_CASE(values_that_do_not_fit_say_what_would) {
  BOOST_TEST(contains(error_of("[compress]\ndensity = 7\n"), "compress.density wants a number from"));
  BOOST_TEST(contains(error_of("[compress]\ndensity = \"much\"\n"), "or \"auto\""));
  BOOST_TEST(contains(error_of("[optimizer]\nkind = \"magic\"\n"), "\"sgd\" or \"momentum\""));
  BOOST_TEST(contains(error_of("[optimizer]\nbatch = 0\n"), "whole number"));
  BOOST_TEST(contains(error_of("[exchange]\nsoft_sync = -1\n"), "exchange.soft_sync wants a whole number from 0"));
  BOOST_TEST(contains(error_of("[exchange]\nstaleness = 1\n"), "did you mean exchange.staleness_scale"));
  BOOST_TEST(contains(error_of("[exchange]\nneighbours = 3\n"), "exchange.neighbours wants an even number"));
  BOOST_TEST(contains(error_of("[model]\nhidden = 5\n"), "list"));
  BOOST_TEST(contains(error_of("density = 0.1\n"), "outside a section"));
  BOOST_TEST(contains(error_of("[compress\n"), "line 1"));
  BOOST_TEST(contains(error_of("[run]\nsamples = 3\n"), "less than one batch"));
}

BOOST_AUTO_TEST_CASE(hogwild_is_off_unless_asked_for_and_sends_as_much_for_a_sample) {
  const auto off = parse_run_config("[compress]\ndensity = 0.001\n", "run.toml").value();
  const auto on = parse_run_config("[optimizer]\nhogwild = 2\n[compress]\ndensity = 0.001\n", "run.toml").value();
  BOOST_TEST(off.batches() == 1u);
  BOOST_TEST(on.batches() == 8u);
  BOOST_TEST(on.density_for(3) == 8 * off.density_for(3));
  BOOST_TEST(parse_run_config("[optimizer]\nhogwild = 12\n", "run.toml").value().batches() == 12u);
  const auto much = parse_run_config("[optimizer]\nhogwild = 2\n[compress]\ndensity = 0.1\n", "run.toml").value();
  BOOST_TEST(much.density_for(1) == 0.2);
  const ParamLayout layout = test::flat_layout(8);
  BOOST_TEST((run_id(off, layout) == run_id(on, layout)));
  BOOST_TEST(contains(error_of("[optimizer]\nhogwild = 65\n"), "whole number from 0 to 64"));
  BOOST_TEST(contains(error_of("[optimizer]\nhogwild = 2\nkind = \"adaptive_revision\"\n"), "optimizer.hogwild"));
  BOOST_TEST(contains(error_of("[optimizer]\nhogwild = 2\n[exchange]\nmode = \"sync\"\n"), "optimizer.hogwild"));
}

BOOST_AUTO_TEST_CASE(local_steps_are_mini_batches_one_after_another) {
  const auto four = parse_run_config("[exchange]\nlocal_steps = 4\n[compress]\ndensity = 0.001\n", "run.toml").value();
  BOOST_TEST(four.batches() == 4u);
  BOOST_TEST(four.batches_in_turn(4) == 4u);
  BOOST_TEST(four.density_for(3) == 0.004);
  const auto two = parse_run_config("[optimizer]\nhogwild = 2\nhogwild_batches = 5\n", "run.toml").value();
  BOOST_TEST(two.batches_in_turn(5) == 3u);
  BOOST_TEST(RunConfig().batches_in_turn(1) == 1u);
  BOOST_TEST(contains(error_of("[exchange]\nlocal_steps = 1025\n"), "1024"));
  BOOST_TEST(contains(error_of("[exchange]\nlocal_steps = \"some\"\n"), "or \"auto\""));
  BOOST_TEST(contains(error_of("[exchange]\nlocal_steps = 2\n[optimizer]\nhogwild = 2\n"), "local_steps"));
  BOOST_TEST(contains(error_of("[exchange]\nlocal_steps = 2\n[optimizer]\nkind = \"adaptive_revision\"\n"),
                      "local_steps"));
}

BOOST_AUTO_TEST_CASE(momentum_is_warned_of_where_it_hurts) {
  const auto warning = [](const std::string& text) { return parse_run_config(text, "run.toml").value().warning(); };
  BOOST_TEST(warning("") == "");
  for (const char* kind : {"momentum", "adam", "adamw"}) {
    const std::string section = std::string("[optimizer]\nkind = \"") + kind + "\"\n";
    BOOST_TEST(contains(warning(section), "hurts sparse broadcast"));
    BOOST_TEST(warning(section + "momentum = 0\n") == "");
    BOOST_TEST(warning(section + "[exchange]\nmode = \"sync\"\n") == "");
  }
  for (const char* kind : {"sgd", "rmsprop", "adaptive_revision"})
    BOOST_TEST(warning(std::string("[optimizer]\nkind = \"") + kind + "\"\n") == "");
}

BOOST_AUTO_TEST_CASE(keys_that_do_nothing_are_warned_of) {
  const auto warning = [](const std::string& text) { return parse_run_config(text, "run.toml").value().warning(); };
  for (const char* key : {"soft_sync", "trainers"})
    BOOST_TEST(contains(warning(std::string("[exchange]\nmode = \"average\"\n") + key + " = 2\n"), "do nothing"));
  BOOST_TEST(contains(warning("[optimizer]\nglobal_batch = 64\n[pipeline]\nstages = 2\n"), "optimizer.batch = "));
  const std::string turns = "[exchange]\ntrainers = 2\n", stages = "[pipeline]\nstages = 2\n";
  const std::string flush = "[exchange]\nflush_bits = 2\n";
  BOOST_TEST(warning(flush) == "");
  for (const char* more : {"mode = \"average\"\n", "[compress]\nbytes_per_update = 500\n", "[pipeline]\nstages = 2\n"})
    BOOST_TEST(contains(warning(flush + more), "exchange.flush_bits does nothing with "));
  for (const char* run : {"text-gpt", "llama-tiny"})
    BOOST_TEST(parse_run_config(preset_text(run), run).value().turn_rules().trainers == 4u);
  BOOST_TEST(warning(turns) == "");
  BOOST_TEST(contains(warning(turns + stages), "exchange.trainers does nothing"));
  BOOST_TEST(parse_run_config(turns, "run.toml").value().turn_rules().trainers == 2u);
  BOOST_TEST(parse_run_config(turns + stages, "run.toml").value().turn_rules().trainers == 0u);
}

BOOST_AUTO_TEST_CASE(overrides_take_toml_and_bare_words) {
  auto config = parse_run_config(preset_text("synthetic"), "synthetic").value();
  BOOST_TEST(override_run_config(config, "compress.density=0.003").ok());
  BOOST_TEST(config.density == 0.003);
  BOOST_TEST(override_run_config(config, "optimizer.kind=adam").ok());
  BOOST_TEST(config.optimizer.kind == "adam");
  BOOST_TEST(override_run_config(config, "model.hidden=[32, 16]").ok());
  BOOST_TEST(config.model.hidden == (std::vector<std::uint32_t>{32, 16}), boost::test_tools::per_element());
  BOOST_TEST(override_run_config(config, "compress.density=auto").ok());
  BOOST_TEST(config.density == 0);
  BOOST_TEST(!override_run_config(config, "compress.densitty=0.1").ok());
  BOOST_TEST(!override_run_config(config, "nonsense").ok());
}

BOOST_AUTO_TEST_CASE(a_file_has_one_budget_and_an_override_takes_its_place) {
  BOOST_TEST(contains(error_of("[compress]\ndensity = 0.1\nbytes_per_update = 500\n"),
                      "line 3: compress.bytes_per_update and compress.density exclude each other; keep one"));
  BOOST_TEST(
      contains(error_of("[compress]\nbytes_per_second = 1e5\nbytes_per_update = 500\n"), "exclude each other"));
  BOOST_TEST(contains(error_of("[compress]\nbytes_per_update = 3\n"), "bytes_per_update wants a number from 64"));
  BOOST_TEST(contains(error_of("[compress]\nbytes_per_minute = 3\n"), "unknown key compress.bytes_per_minute"));
  BOOST_TEST(contains(error_of("[compress]\nscope = \"layer\"\n"), "\"global\" or \"tensor\""));
  auto config =
      parse_run_config("[compress]\nbytes_per_second = 50000\nscope = \"tensor\"\n", "run.toml").value();
  BOOST_TEST(config.bytes_per_second == 50'000);
  BOOST_TEST(config.has_byte_budget());
  BOOST_TEST((config.scope == compress::Scope::tensor));
  BOOST_TEST(config.density_for(4) == 0);
  BOOST_TEST(override_run_config(config, "compress.bytes_per_update=700").ok());
  BOOST_TEST(config.bytes_per_update == 700);
  BOOST_TEST(config.bytes_per_second == 0);
  BOOST_TEST(override_run_config(config, "compress.density=0.01").ok());
  BOOST_TEST(!config.has_byte_budget());
  BOOST_TEST(config.density_for(4) == 0.01);
}

BOOST_AUTO_TEST_CASE(convolutional_networks_have_their_keys) {
  const auto config = parse_run_config(
      "[model]\nfamily = \"cnn\"\nchannels = [16, 32]\nblocks = 3\ngroups = 8\npool_every = 2\nhidden = []\n",
      "run.toml");
  BOOST_REQUIRE(config.ok());
  BOOST_TEST((config->model.stage_channels == std::vector<std::uint32_t>{16, 32}));
  BOOST_TEST(config->model.blocks == 3u);
  BOOST_TEST(config->model.groups == 8u);
  BOOST_TEST(config->model.pool_every == 2u);
  BOOST_TEST(config->model.hidden.empty());
  BOOST_TEST(contains(error_of("[model]\nchannels = 32\n"), "line 2: model.channels wants a list"));
  BOOST_TEST(contains(error_of("[model]\npool_every = 0\n"), "model.pool_every wants a whole number from 1"));
  BOOST_TEST(contains(error_of("[model]\nchanels = [32]\n"), "did you mean model.channels?"));
}

BOOST_AUTO_TEST_CASE(local_steps_may_follow_the_delay_of_a_peer_that_broadcasts) {
  const auto run = [](const std::string& more) {
    return parse_run_config("[exchange]\nlocal_steps = \"auto\"\n" + more, "run.toml").value();
  };
  BOOST_TEST(run("").follows_delay());
  BOOST_TEST(run("").batches() == 1u);
  BOOST_TEST(run("").density_for(4, 3) == 3 * run("").density_for(4, 1));
  BOOST_TEST(!run("mode = \"average\"\n").follows_delay());
  BOOST_TEST(run("mode = \"average\"\n").steps_of_update() == 1u);
  BOOST_TEST(!RunConfig().follows_delay());
  BOOST_TEST(contains(error_of("[exchange]\nlocal_steps = \"auto\"\n[optimizer]\nkind = \"adaptive_revision\"\n"),
                      "local_steps"));
}

BOOST_AUTO_TEST_CASE(rate_is_shared_and_grows_with_the_root_of_the_peers) {
  RunConfig config;
  config.rate = 0.5;
  config.schedule = {0, 1};  // constant
  BOOST_TEST(config.rate_for(4, 0.5) == 0.5 / 4, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(config.rate_for(16, 0.5) == 1.0 / 16, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(config.rate_for(64, 0.5) == 1.0 / 64, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(config.rate_for(1, 0.5) == 0.25, boost::test_tools::tolerance(1e-12));
  config.rate_scaling = "none";
  BOOST_TEST(config.rate_for(16, 0.5) == 0.5 / 16, boost::test_tools::tolerance(1e-12));
}

// Each of the two laws holds for its own parameters, whatever the other is.
BOOST_AUTO_TEST_CASE(embeddings_may_have_a_law_of_their_own) {
  const std::map<std::string, double> growth_of_16 = {{"sqrt", 2}, {"none", 1}};
  for (const auto& [matrices, matrix_growth] : growth_of_16)
    for (const auto& [others, other_growth] : growth_of_16) {
      RunConfig config;
      config.rate_scaling = matrices;
      config.schedule = {0, 1};  // constant
      BOOST_TEST(config.adam_factor_for(16) == 1);
      config.adam_scaling = others;
      BOOST_TEST(config.rate_for(16, 0.5) == 0.5 * matrix_growth / 16, boost::test_tools::tolerance(1e-12));
      BOOST_TEST(config.rate_for(16, 0.5) * config.adam_factor_for(16) == 0.5 * other_growth / 16,
                 boost::test_tools::tolerance(1e-12));
      BOOST_TEST(config.adam_factor_for(4) == 1);
    }
}

// Sixteen rows of all peers: rate, entries and rows of a step of the whole run do not depend on the number of peers.
BOOST_AUTO_TEST_CASE(a_global_batch_is_shared_among_the_peers) {
  RunConfig config;
  config.batch = 4;
  config.global_batch = 16;
  config.rate = 0.5;
  config.schedule = {0, 1};  // constant
  config.density = 0.02;
  const auto rows = [&](std::size_t peers) { return config.batch_rules().rows(peers); };
  BOOST_TEST(rows(0) == 4u);
  BOOST_TEST(rows(1) == 4u);
  BOOST_TEST(rows(4) == 4u);
  BOOST_TEST(rows(5) == 3u);
  BOOST_TEST(rows(16) == 1u);
  BOOST_TEST(rows(100) == 1u);
  for (const std::size_t peers : {4u, 8u, 16u}) {
    BOOST_TEST(16.0 * config.rate_for(peers, 0.5) == 16 * 0.5 / static_cast<double>(peers));
    BOOST_TEST(static_cast<double>(peers) * config.density_for(peers, 1) == 4 * 0.02);
  }
  BOOST_TEST(config.batch_rules().pieces(5, 7) == 21u);
  config.global_batch = 0;
  BOOST_TEST(config.batch_rules().pieces(5, 7) == 7u);
  config.global_batch = 16;
  config.pipeline.stages = 2;
  BOOST_TEST(rows(16) == 4u);
}

BOOST_AUTO_TEST_CASE(a_global_batch_counts_where_there_is_one_and_fits_what_it_changes) {
  const ParamLayout layout = test::small_layout();
  const auto with = [](const std::string& line) {
    return parse_run_config("[optimizer]\n" + line, "run.toml").value();
  };
  BOOST_TEST((run_id(with("global_batch = 0\n"), layout) == run_id(with(""), layout)));
  BOOST_TEST((run_id(with("global_batch = 64\n"), layout) != run_id(with(""), layout)));
  BOOST_TEST(contains(error_of("[optimizer]\nglobal_batch = 16\nhogwild = 2\n"), "set optimizer.global_batch = 0"));
  BOOST_TEST(contains(error_of("[optimizer]\nglobal_batch = 16\n[model]\nfamily = \"lstm\"\n"), "as many lanes"));
}

BOOST_AUTO_TEST_CASE(automatic_density_spends_25_entries_a_parameter) {
  RunConfig config;
  config.density = 0;
  config.samples = 480'000;
  config.batch = 16;
  const double rounds = 480'000.0 / (16 * 16);
  BOOST_TEST(config.density_for(16) == 25 / (16 * rounds), boost::test_tools::tolerance(1e-9));
  config.samples = 1000;
  BOOST_TEST(config.density_for(16) == 1e-2);
  config.samples = 1'000'000'000;
  BOOST_TEST(config.density_for(16) == 1e-4);
}

BOOST_AUTO_TEST_CASE(a_density_that_follows_the_rate_keeps_its_mean) {
  RunConfig config;
  config.density = 0.001;
  BOOST_TEST(config.density_at(4, 0.3, config.batches()) == 0.001);
  BOOST_REQUIRE(override_run_config(config, "compress.follow_rate=true").ok());
  double sum = 0;
  for (int step = 0; step < 1000; ++step) {
    const double progress = (step + 0.5) / 1000;
    sum += config.density_at(4, progress, config.batches());
    BOOST_TEST(config.density_at(4, progress, config.batches()) / config.schedule.factor(progress) ==
                   config.density_at(4, 0.5, config.batches()) / config.schedule.factor(0.5),
               boost::test_tools::tolerance(1e-9));
  }
  BOOST_TEST(sum / 1000 == 0.001, boost::test_tools::tolerance(1e-3));
  BOOST_TEST(!override_run_config(config, "compress.follow_rate=3").ok());
  BOOST_TEST(!override_run_config(config, "compress.bytes_per_update=500").ok());
  BOOST_TEST(
      contains(error_of("[compress]\nbytes_per_update = 500\nfollow_rate = true\n"), "the budget is in bytes"));
}

BOOST_AUTO_TEST_CASE(the_early_phase_is_denser_where_asked) {
  RunConfig config;
  config.density = 0.001;
  BOOST_REQUIRE(override_run_config(config, "exchange.early_density=4").ok());
  BOOST_TEST(contains(config.warning(), "exchange.early_share"));
  BOOST_TEST(config.density_at(4, 0, config.batches()) == 0.001);
  BOOST_REQUIRE(override_run_config(config, "exchange.early_share=0.1").ok());
  BOOST_TEST(config.warning().empty());
  BOOST_TEST(config.density_at(4, 0.099, config.batches()) == 0.004);
  BOOST_TEST(config.density_at(4, 0.1, config.batches()) == 0.001);
  config.density = 0.1;
  BOOST_TEST(config.density_at(4, 0, config.batches()) == 0.2);  // as dense as an update may be
  BOOST_TEST(!override_run_config(config, "compress.bytes_per_update=500").ok());
}

BOOST_AUTO_TEST_CASE(a_router_is_named_or_found) {
  RunConfig config;
  for (const std::string good : {"auto", "192.168.1.1", ""}) {
    BOOST_REQUIRE(override_run_config(config, "network.map_port=\"" + good + "\"").ok());
    BOOST_TEST(config.map_port == good);
  }
  for (const char* bad : {"true", "yes", "1.2.3", "router.lan", "\"fe80::1\""}) {
    const auto set = override_run_config(config, std::string("network.map_port=") + bad);
    BOOST_REQUIRE(!set.ok());
    BOOST_TEST(set.error().text.find("wants \"auto\"") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(every_key_says_what_it_is) {
  const std::vector<RunKey> keys = run_keys();
  BOOST_TEST(keys.size() > 70);
  const RunConfig plain;
  for (const RunKey& key : keys) {
    // Each documented default can be set explicitly, and changes nothing.
    RunConfig same;
    if (!key.by_default.empty())
      BOOST_TEST(override_run_config(same, key.name + "=" + key.by_default).ok(), key.name);
    BOOST_TEST((run_id(same, rumor::test::small_layout()) == run_id(plain, rumor::test::small_layout())), key.name);
    BOOST_TEST(!run_key_help(key.name).empty(), key.name);
    BOOST_TEST(!key.wants.empty(), key.name);
  }
  const auto named = [&](const std::string& name) {
    return *std::find_if(keys.begin(), keys.end(), [&](const RunKey& key) { return key.name == name; });
  };
  BOOST_TEST(named("exchange.in_flight_weight").wants == "a number from 0 to 1, or \"auto\"");
  BOOST_TEST(named("exchange.in_flight_weight").by_default == "\"auto\"");
  BOOST_TEST(named("model.hidden").by_default == "[128, 128]");
  BOOST_TEST(named("network.listen").by_default == "\"127.0.0.1:0\"");
  BOOST_TEST(named("compress.bytes_per_update").by_default.empty());
  BOOST_TEST(named("run.name").shared);
  BOOST_TEST(!named("network.status_token").shared);
  BOOST_TEST(run_key_help("network.nothing").empty());
}
