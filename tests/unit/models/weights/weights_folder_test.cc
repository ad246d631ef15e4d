// Folders as Hugging Face writes them: what lies beside the weights.
#include "models/weights/weights_folder.h"

#include <boost/test/unit_test.hpp>

#include "models/weights/model_json.h"
#include "tests/unit/models/scratch.h"

namespace rumor::models {

BOOST_AUTO_TEST_SUITE(folder_of_weights)

BOOST_AUTO_TEST_CASE(a_file_or_an_empty_folder_says_nothing) {
  const Scratch scratch;
  for (const std::string& path : {scratch / "", scratch / "gone.safetensors"}) {
    const auto folder = read_weights_folder(path);
    BOOST_REQUIRE(folder.ok());
    BOOST_TEST((!folder->model && folder->tokenizer.empty()));
  }
}

BOOST_AUTO_TEST_CASE(a_config_of_transformers_says_which_model_it_is) {
  const Scratch scratch;
  scratch.write("config.json", R"({"model_type": "llama", "hidden_act": "silu", "hidden_size": 32, "vocab_size": 300,
    "intermediate_size": 48, "max_position_embeddings": 64, "num_attention_heads": 4, "num_hidden_layers": 2,
    "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 10000.0, "tie_word_embeddings": true})");
  scratch.write("tokenizer.json", "{}");
  const auto folder = read_weights_folder(scratch / "");
  BOOST_REQUIRE(folder.ok());
  BOOST_REQUIRE(folder->model.has_value());
  BOOST_TEST((folder->model->family == "llama" && folder->model->embedding == 32 && folder->model->layers == 2));
  BOOST_TEST(folder->tokenizer.ends_with("/tokenizer.json"));
}

BOOST_AUTO_TEST_CASE(our_own_families_leave_it_to_the_run_file) {
  ModelConfig config;
  config.family = "mlp";
  config.inputs = 4;
  config.classes = 2;
  config.hidden = {3};
  const Scratch scratch;
  scratch.write("config.json", model_json(config));
  const auto folder = read_weights_folder(scratch / "");
  BOOST_REQUIRE(folder.ok());
  BOOST_TEST(!folder->model.has_value());
}

BOOST_AUTO_TEST_CASE(a_damaged_config_is_an_error_that_names_the_file) {
  const Scratch scratch;
  scratch.write("config.json", "{\"model_type\": ");
  const auto folder = read_weights_folder(scratch / "");
  BOOST_REQUIRE(!folder.ok());
  BOOST_TEST(folder.error().text.find("config.json") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
