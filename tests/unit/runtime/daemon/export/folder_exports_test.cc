// Exports of a follower: due at intervals or at a new best loss, whole or not at all, never over weights of others.
#include "runtime/daemon/export/folder_exports.h"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "models/weights/adapter_json.h"
#include "models/weights/safetensors.h"
#include "tests/unit/contains.h"
#include "tests/unit/runtime/support.h"
#include "tests/unit/scratch_folder.h"

namespace rumor::daemon {

using rumor::test::contains;

BOOST_AUTO_TEST_SUITE(folder_exports)

namespace {

constexpr TimePoint start{};

FolderExports::Description some_model() { return {test::some_run(), R"({"model_type": "mlp"})", ""}; }

// A replica after so many updates, each of 10 samples.
ExportedWeights weights_after(std::uint64_t updates) {
  ReplicaState replica;
  replica.weights = LargeVector<std::int32_t>(test::small_layout().params(), 1 << 23);
  replica.have.insert(test::stream(1), {1, updates});
  replica.samples = 10 * updates;
  ExportedWeights weights = exported_replica({test::some_run(), test::small_layout()}, replica);
  weights.contributions.nodes = {{.node = test::node(1), .stream = {}, .updates = updates}};
  return weights;
}

FolderExports opened(const ExportPlan& plan) {
  auto exports = FolderExports::open(plan, some_model());
  BOOST_TEST_REQUIRE(exports.ok());
  return std::move(exports).value();
}

Result<void> export_now(FolderExports& exports, ExportedWeights weights, TimePoint now) {
  const FolderExports::Job job = exports.begin(std::move(weights), now);
  const Result<void> written = FolderExports::write(job);
  exports.ended(job, written, now);
  return written;
}

models::SafetensorsFile read_back(const std::string& folder) {
  return models::SafetensorsFile::read(folder + "/model.safetensors").value();
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_file_says_of_which_replica_its_weights_are) {
  const Scratch scratch;
  FolderExports exports = opened({.folder = scratch.path("out")});
  ExportedWeights weights = weights_after(3);
  weights.unix_seconds = 1'800'000'000;
  const std::string digest = digest_text(*weights.digest);
  BOOST_TEST_REQUIRE(export_now(exports, std::move(weights), start).ok());
  const models::SafetensorsFile file = read_back(scratch.path("out"));
  BOOST_TEST(file.floats(*file.find("a.bias")).value() == std::vector<float>(20, 0.5f));
  auto metadata = file.metadata();
  BOOST_TEST(metadata["run"] == test::some_run().hex());
  BOOST_TEST(metadata["digest"] == digest);
  BOOST_TEST(metadata["samples"] == "30");
  BOOST_TEST(metadata["updates"] == "3");
  BOOST_TEST(metadata["exported_unix_s"] == "1800000000");
  const auto rows = nlohmann::json::parse(metadata["contributions"]);
  BOOST_TEST(rows.at(0).at("node_id") == test::node(1).hex());
  std::ifstream config(scratch.path("out/config.json"));
  BOOST_TEST(nlohmann::json::parse(config).at("rumor").at("run") == test::some_run().hex());
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(scratch.path("out"))) ++files;
  BOOST_TEST(files == 2u);  // nothing beside them
}

BOOST_AUTO_TEST_CASE(an_export_is_due_when_its_time_has_come_and_the_weights_are_others) {
  const Scratch scratch;
  FolderExports exports = opened({.folder = scratch.path("out"), .every = 60s});
  const auto digest_after = [](std::uint64_t updates) { return *weights_after(updates).digest; };
  BOOST_TEST(!exports.due({}, start, false));  // no update yet
  BOOST_TEST(exports.due(digest_after(1), start, false));
  const FolderExports::Job job = exports.begin(weights_after(1), start);
  BOOST_TEST(!exports.due(digest_after(2), start + 60s, false));  // one is under way
  BOOST_TEST(exports.due(digest_after(2), start, true));           // the process ends
  exports.ended(job, FolderExports::write(job), start);
  BOOST_TEST(!exports.due(digest_after(2), start + 59s, false));
  BOOST_TEST(exports.due(digest_after(2), start + 60s, false));
  BOOST_TEST(!exports.due(digest_after(1), start + 60s, true));  // it is there

  const FolderExports later = opened({.folder = scratch.path("out"), .every = 60s});
  BOOST_TEST(!later.due(digest_after(1), start, false));
  BOOST_TEST(later.due(digest_after(2), start, false));
  BOOST_TEST(later.status(start).samples == 10u);
}

BOOST_AUTO_TEST_CASE(only_a_lower_loss_is_exported_also_after_a_restart) {
  const Scratch scratch;
  const ExportPlan plan{.folder = scratch.path("out"), .best = true};
  {
    FolderExports exports = opened(plan);
    BOOST_TEST(!exports.due(*weights_after(1).digest, start, true));
    BOOST_TEST(exports.improves(2.5));
    ExportedWeights weights = weights_after(1);
    weights.loss = 2.5;
    BOOST_TEST_REQUIRE(export_now(exports, std::move(weights), start).ok());
    BOOST_TEST(!exports.improves(2.5));
  }
  const FolderExports later = opened(plan);
  BOOST_TEST(!later.improves(2.6));
  BOOST_TEST(later.improves(2.4));
}

BOOST_AUTO_TEST_CASE(an_export_that_fails_leaves_the_last_one_and_is_tried_again) {
  const Scratch scratch;
  const std::string folder = scratch.path("out");
  FolderExports exports = opened({.folder = folder, .every = 600s});
  BOOST_TEST_REQUIRE(export_now(exports, weights_after(1), start).ok());
  std::filesystem::create_directory(folder + "/model.safetensors.part");  // in the way
  const auto failed = export_now(exports, weights_after(2), start + 600s);
  BOOST_TEST_REQUIRE(!failed.ok());
  BOOST_TEST(contains(failed.error().text, "cannot write"));
  BOOST_TEST(exports.status(start).trouble == failed.error().text);
  const FolderExports::Job again = exports.begin(weights_after(2), start + 600s);
  BOOST_TEST(exports.ended(again, failed, start + 600s).empty());  // it was said
  BOOST_TEST(read_back(folder).metadata().at("samples") == "10");
  BOOST_TEST(!exports.due(*weights_after(2).digest, start + 629s, false));
  BOOST_TEST(exports.due(*weights_after(2).digest, start + 630s, false));
  std::filesystem::remove(folder + "/model.safetensors.part");
  BOOST_TEST(export_now(exports, weights_after(2), start + 630s).ok());
  BOOST_TEST(exports.status(start).trouble.empty());
}

// PEFT's two files and no others; a later process takes the export up.
BOOST_AUTO_TEST_CASE(adapters_are_exported_as_peft_has_them) {
  const Scratch scratch;
  const std::string folder = scratch.path("out"), hash(64, 'a');
  FolderExports::Description adapters = some_model();
  adapters.tokenizer_json = "{}";
  adapters.adapter_json = models::adapter_json({"llama", {.kind = "lora", .rank = 2, .alpha = 4}, "/base", hash});
  FolderExports exports = FolderExports::open({.folder = folder}, adapters).value();
  BOOST_TEST_REQUIRE(export_now(exports, weights_after(3), start).ok());
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.insert(entry.path().filename());
  BOOST_TEST((files == std::set<std::string>{"adapter_config.json", "adapter_model.safetensors"}));
  const auto file = models::SafetensorsFile::read(folder + "/adapter_model.safetensors").value();
  BOOST_TEST(file.metadata().at("base_sha256") == hash);
  BOOST_TEST(file.metadata().at("samples") == "30");
  std::ifstream in(folder + "/adapter_config.json");
  const auto config = nlohmann::json::parse(in);
  BOOST_TEST(config.at("base_model_name_or_path") == "/base");
  BOOST_TEST(config.at("r") == 2);
  BOOST_TEST(!config.contains("base_sha256"));  // PEFT knows no such member
  BOOST_TEST(FolderExports::open({.folder = folder}, adapters).value().status(start).samples == 30u);
  adapters.run = {};
  BOOST_TEST(contains(FolderExports::open({.folder = folder}, adapters).error().text,
                      "will not replace " + folder + "/adapter_model.safetensors: it is of run "));
}

BOOST_AUTO_TEST_CASE(weights_of_others_are_not_replaced) {
  const Scratch scratch;
  const auto refusal = [&](const FolderExports::Description& description) {
    const auto exports = FolderExports::open({.folder = scratch.path()}, description);
    return exports ? std::string() : exports.error().text;
  };
  const std::string file = scratch.path("model.safetensors");
  std::ofstream(file) << "not safetensors";
  BOOST_TEST(contains(refusal(some_model()), "will not replace"));
  std::filesystem::remove(file);
  BOOST_TEST_REQUIRE(models::write_safetensors(file, {}, {{"format", "pt"}}).ok());
  BOOST_TEST(contains(refusal(some_model()), "another program wrote it"));
  FolderExports::Description other = some_model();
  other.run = {};
  std::filesystem::remove(file);
  FolderExports exports = opened({.folder = scratch.path()});
  BOOST_TEST_REQUIRE(export_now(exports, weights_after(1), start).ok());
  BOOST_TEST(refusal(some_model()).empty());
  BOOST_TEST(contains(refusal(other), "of run 07070707"));
  std::ofstream(scratch.path("model.safetensors.index.json")) << "{}";
  BOOST_TEST(contains(refusal(some_model()), "several files"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::daemon
