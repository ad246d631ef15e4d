// The id of a run: which keys count, and what peers of unlike runs are told.
#include "runtime/run/run_identity.h"

#include <boost/test/unit_test.hpp>
#include <memory>

#include "models/families/adapters.h"
#include "runtime/base/sha256.h"
#include "runtime/run/run_config.h"
#include "tests/unit/contains.h"
#include "tests/unit/runtime/run/error_of.h"
#include "tests/unit/runtime/support.h"

using namespace rumor;

BOOST_AUTO_TEST_SUITE(run_identity)

namespace {

using rumor::test::contains;
using rumor::test::error_of;

// A tokenizer of so many tokens: those of the bytes, and some that no text has.
std::shared_ptr<const models::Tokenizer> byte_tokenizer(std::size_t tokens) {
  models::TokenizerParts parts;
  parts.patterns = {"."};
  parts.tokens.resize(tokens);
  return models::Tokenizer::create(std::move(parts)).value();
}

}  // namespace

BOOST_AUTO_TEST_CASE(parts_differ_where_runs_do) {
  const auto config = parse_run_config(preset_text("synthetic"), "synthetic").value();
  const ParamLayout layout = test::small_layout();
  models::StartWeights start, other;
  other.hash = sha256(Bytes{1});
  RunConfig coarser = config;
  BOOST_REQUIRE(override_run_config(coarser, "compress.grid_bits=20").ok());
  const std::vector<RunPart> parts = run_parts(config, layout, &start);
  const auto texts_unlike = [&](const std::vector<RunPart>& others) {
    std::string texts;
    BOOST_REQUIRE(others.size() == parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (parts[i].hash != others[i].hash) texts += others[i].text + ";";
    return texts;
  };
  BOOST_TEST(texts_unlike(run_parts(config, layout, &start)) == "");
  BOOST_TEST(texts_unlike(run_parts(coarser, layout, &start)) == "compress.grid_bits = 20;");
  BOOST_TEST(texts_unlike(run_parts(config, layout, &other)) == "the initial weights;");
  other = {.weights = {}, .hash = start.hash, .beside = "frozen"};
  BOOST_TEST(texts_unlike(run_parts(config, layout, &other)) == "the parameters that are not trained;");
  std::vector<TensorInfo> tensors = layout.tensors();
  tensors.back().shape = {1};
  const auto changed = ParamLayout::create(tensors);
  BOOST_TEST(texts_unlike(run_parts(config, *changed, &start)).starts_with("tensor " + tensors.back().name));
}

BOOST_AUTO_TEST_CASE(a_start_note_is_read_back_and_nothing_else) {
  const StartNote note{22, sha256(Bytes{1})};
  Bytes bytes = note.encode();
  BOOST_REQUIRE(StartNote::decode(bytes).has_value());
  BOOST_TEST(StartNote::decode(bytes)->grid_bits == 22);
  BOOST_TEST((StartNote::decode(bytes)->hash == note.hash));
  bytes.push_back(0);
  BOOST_TEST(!StartNote::decode(bytes).has_value());
  bytes.resize(8);
  BOOST_TEST(!StartNote::decode(bytes).has_value());
  BOOST_TEST(!StartNote::decode({}).has_value());
  bytes = note.encode();
  bytes[0] = 99;
  BOOST_TEST(!StartNote::decode(bytes).has_value());
}

BOOST_AUTO_TEST_CASE(weights_of_a_file_are_part_of_the_run) {
  const auto config = parse_run_config(preset_text("synthetic"), "synthetic").value();
  const ParamLayout layout = test::small_layout();
  models::StartWeights one, other;
  other.hash = sha256(Bytes{1});
  BOOST_TEST((run_id(config, layout, &one) != run_id(config, layout)));
  BOOST_TEST((run_id(config, layout, &one) != run_id(config, layout, &other)));
  other.hash = one.hash;
  other.beside = "other frozen weights";
  BOOST_TEST((run_id(config, layout, &one) != run_id(config, layout, &other)));
  RunConfig moved = config;
  BOOST_REQUIRE(override_run_config(moved, "model.weights='/elsewhere/7.safetensors'").ok());
  BOOST_TEST(moved.weights == "/elsewhere/7.safetensors");
  BOOST_TEST((run_id(moved, layout, &one) == run_id(config, layout, &one)));
}

BOOST_AUTO_TEST_CASE(the_run_id_covers_what_must_be_equal_and_nothing_else) {
  const ParamLayout layout = test::small_layout();
  const auto base = parse_run_config(preset_text("synthetic"), "synthetic").value();
  const auto id_with = [&](const std::string& assignment) {
    RunConfig config = base;
    BOOST_REQUIRE(override_run_config(config, assignment).ok());
    return run_id(config, layout);
  };
  const RunId id = run_id(base, layout);
  for (const char* shared : {"run.seed=2", "run.samples=70000", "optimizer.rate=0.31", "optimizer.batch=8",
                             "compress.grid_bits=20", "data.seed=9", "data.skew=2", "model.context=64",
                             "model.layers=2", "model.heads=2", "model.embedding=64"})
    BOOST_TEST_CONTEXT(shared) BOOST_TEST((id_with(shared) != id));
  for (const char* own : {"compress.density=0.02", "compress.bytes_per_update=900", "compress.scope=tensor",
                          "exchange.period_ms=9", "exchange.soft_sync=2", "exchange.steps_ahead=4",
                          "exchange.narrow_links=wait", "exchange.staleness_bound=1",
                          "exchange.staleness_scale=1", "exchange.neighbours=2", "exchange.consensus_rate=0.2",
                          "exchange.drift_bound=1", "exchange.teachers=4", "exchange.refresh_every=9",
                          "exchange.agreement=2", "network.listen=127.0.0.1:1", "data.path=/elsewhere"})
    BOOST_TEST_CONTEXT(own) BOOST_TEST((id_with(own) == id));
  BOOST_TEST((run_id(base, test::small_layout(21, 30)) != id));
}

// Keys of Muon came later: runs with other optimizers keep the id that they had.
BOOST_AUTO_TEST_CASE(keys_of_muon_count_for_muon_alone) {
  const ParamLayout layout = test::small_layout();
  for (const bool muon : {false, true}) {
    const auto plain = parse_run_config(muon ? "[optimizer]\nkind = \"muon\"\n" : "", "run.toml").value();
    for (const char* key : {"optimizer.adam_share=0.5", "optimizer.adam_beta1=0.5", "optimizer.adam_scaling=none"}) {
      RunConfig set = plain;
      BOOST_REQUIRE(override_run_config(set, key).ok());
      BOOST_TEST((run_id(set, layout) != run_id(plain, layout)) == muon, key);
    }
  }
}

// Keys of a pipeline count where there are stages: all other runs keep the id that they had.
BOOST_AUTO_TEST_CASE(keys_of_a_pipeline_count_where_there_are_stages) {
  const ParamLayout layout = test::small_layout();
  for (const bool cut : {false, true}) {
    const auto plain = parse_run_config(cut ? "[pipeline]\nstages = 2\n" : "", "run.toml").value();
    for (const char* key : {"pipeline.micro_batches=2", "pipeline.border=int8"}) {
      RunConfig set = plain;
      BOOST_REQUIRE(override_run_config(set, key).ok());
      BOOST_TEST((run_id(set, layout) != run_id(plain, layout)) == cut, key);
    }
  }
  BOOST_TEST(contains(error_of("[pipeline]\ncut = [1, 2]\n"), "pipeline.cut cuts a model into pipeline.stages"));
  BOOST_TEST(contains(error_of("[pipeline]\nstages = 2\nmicro_batches = 3\n"), "does not divide optimizer.batch"));
  BOOST_TEST(contains(error_of("[pipeline]\nborder = \"f16\"\n"), "\"f32\" or \"bf16\" or \"int8\""));
  BOOST_TEST(contains(error_of("[pipeline]\nstages = 0\n"), "pipeline.stages wants a whole number from 1"));
}

// The decay is a part of runs whose residual fades, so that audits know it.
BOOST_AUTO_TEST_CASE(the_decay_of_a_residual_counts_where_there_is_one) {
  const ParamLayout layout = test::small_layout();
  for (const bool broadcasts : {true, false}) {
    const auto plain = parse_run_config(broadcasts ? "" : "[exchange]\nmode = \"average\"\n", "run.toml").value();
    for (const bool fades : {true, false}) {
      RunConfig set = plain;
      BOOST_REQUIRE(override_run_config(set, fades ? "compress.residual_decay=0.3" : "compress.residual_decay=0").ok());
      BOOST_TEST((run_id(set, layout) != run_id(plain, layout)) == (broadcasts && fades));
      const bool warns = contains(set.warning(), "compress.residual_decay is of peers that broadcast");
      BOOST_TEST(warns == (fades && !broadcasts));
    }
  }
}

// Keys of adapters and the base that they belong to count where there are adapters.
BOOST_AUTO_TEST_CASE(adapters_and_their_base_are_part_of_the_run) {
  const ParamLayout layout = test::small_layout();
  const auto on = [](const std::string& keys, std::uint8_t base) {
    auto config = parse_run_config("[model]\nfamily = \"llama\"\n" + keys, "run.toml").value();
    config.model.adapter.base = std::make_shared<models::FrozenBase>(models::FrozenBase{{}, sha256(Bytes{base})});
    return config;
  };
  for (const bool adapted : {false, true}) {
    const std::string kind = adapted ? "adapter = \"lora\"\n" : "";
    const RunId plain = run_id(on(kind, 1), layout);
    for (const char* key : {"adapter_rank = 4", "adapter_alpha = 16.0", "adapter_targets = [\"q_proj\"]"})
      BOOST_TEST((run_id(on(kind + key, 1), layout) != plain) == adapted, key);
    BOOST_TEST((run_id(on(kind, 2), layout) != plain) == adapted);
    // The usual targets by name, in any order.
    BOOST_TEST((run_id(on(kind + "adapter_targets = [\"v_proj\", \"q_proj\"]", 1), layout) == plain));
  }
  std::vector<std::uint32_t> hashes;
  for (const RunPart& part : run_parts(on("adapter = \"lora\"", 1), layout)) hashes.push_back(part.hash);
  BOOST_TEST(unlike_parts(run_parts(on("adapter = \"lora\"", 2), layout), hashes) ==
             "it does not have what is here: the frozen base of model.adapter, which is in model.weights and has the "
             "SHA-256 " + sha256(Bytes{2}).hex().substr(0, 16) + "...");
  BOOST_TEST(contains(error_of("[model]\nadapter = \"lora\"\n[pipeline]\nstages = 2\n"), "leave one of them out"));
}

BOOST_AUTO_TEST_CASE(the_tokenizer_is_shared_and_its_path_is_not) {
  const ParamLayout layout = test::small_layout();
  RunConfig bytes, one;
  BOOST_REQUIRE(override_run_config(one, "data.tokens=/here/tokenizer.json").ok());
  one.data.tokenizer = byte_tokenizer(256);
  RunConfig moved = one, other = one;
  BOOST_REQUIRE(override_run_config(moved, "data.tokens=/here/tokenizer.json").ok());
  BOOST_TEST((moved.data.tokenizer == one.data.tokenizer));
  BOOST_REQUIRE(override_run_config(moved, "data.tokens=/there/tokenizer.json").ok());
  BOOST_TEST((moved.data.tokenizer == nullptr));  // to be read
  moved.data.tokenizer = byte_tokenizer(256);
  other.data.tokenizer = byte_tokenizer(257);
  BOOST_TEST((run_id(moved, layout) == run_id(one, layout)));
  BOOST_TEST((run_id(other, layout) != run_id(one, layout)));
  BOOST_TEST((run_id(bytes, layout) != run_id(one, layout)));
  std::vector<std::uint32_t> hashes;
  for (const RunPart& part : run_parts(other, layout)) hashes.push_back(part.hash);
  BOOST_TEST(unlike_parts(run_parts(one, layout), hashes) ==
             "it does not have what is here: data.tokens = this tokenizer, \"/here/tokenizer.json\"");
}

// The owner of a run is part of its name; a run without an owner keeps the name it had.
BOOST_AUTO_TEST_CASE(the_owner_is_shared_and_the_lists_are_not) {
  const std::string key = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
  RunConfig config;
  const RunId plain = run_id(config, test::small_layout());
  BOOST_REQUIRE(override_run_config(config, "network.allow=friends.txt").ok());
  BOOST_REQUIRE(override_run_config(config, "network.token=t.tok").ok());
  BOOST_REQUIRE(override_run_config(config, "network.revoke=r.txt").ok());
  BOOST_TEST((run_id(config, test::small_layout()) == plain));
  BOOST_REQUIRE(override_run_config(config, "run.owner=" + key).ok());
  BOOST_TEST(config.owner == key);
  BOOST_TEST((run_id(config, test::small_layout()) != plain));
  BOOST_TEST(contains(error_of("[run]\nowner = \"abc\"\n"), "64 hex digits"));
  BOOST_TEST(contains(error_of("[run]\nowner = 7\n"), "64 hex digits"));
}

BOOST_AUTO_TEST_SUITE_END()
