// Weights out of files of Hugging Face's transformers (golden_weights.py) and of our own, and config.json
// both ways.
#include "models/weights/start_weights.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <fstream>
#include <iterator>

#include "models/families/gpt.h"
#include "models/weights/model_json.h"
#include "models/weights/safetensors.h"
#include "models/weights/safetensors_writer.h"
#include "runtime/base/sha256.h"
#include "tests/unit/models/weights/golden_folder.h"
#include "tests/unit/models/scratch.h"

namespace rumor::models {
namespace {

// Not before main(): the pointer is of another source.
std::string golden_path(const std::string& file = "") {
  return golden_folder + file;
}

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

ModelConfig tiny() {
  ModelConfig config;
  config.family = "gpt";
  config.vocabulary = 7;
  config.context = config.embedding = 4;
  config.layers = 1;
  config.heads = 2;
  return config;
}

// The weights that golden_weights.py wrote.
std::vector<float> expected(const ParamLayout& layout) {
  std::vector<float> weights;
  for (std::size_t t = 0; t < layout.tensors().size(); ++t)
    for (std::size_t i = 0; i < layout.tensors()[t].size; ++i)
      weights.push_back(static_cast<float>(static_cast<int>((7 * i + 13 * t) % 97) - 48) / 64);
  return weights;
}

ParamLayout layout_with(std::vector<TensorInfo> tensors) {
  return ParamLayout::create(std::move(tensors)).value();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(start_weights)

BOOST_AUTO_TEST_CASE(files_of_transformers_are_read_in_all_their_forms) {
  const ParamLayout layout = gpt_layout(tiny()).value();
  for (const char* file : {"", "/model.safetensors", "/bare_f16.safetensors", "/turned_bf16.safetensors"}) {
    const auto weights = read_named_weights(golden_path(file), layout);
    BOOST_REQUIRE(weights.ok());
    BOOST_TEST((*weights == expected(layout)), file);
  }
}

BOOST_AUTO_TEST_CASE(equal_weights_on_the_grid_have_equal_hashes) {
  const ParamLayout layout = gpt_layout(tiny()).value();
  const auto one = read_start_weights(golden_path(), layout, 24).value();
  const auto other = read_start_weights(golden_path("/bare_f16.safetensors"), layout, 24).value();
  BOOST_TEST((one->hash == other->hash));
  const std::vector<float> floats = expected(layout);
  for (std::size_t i = 0; i < floats.size(); ++i) BOOST_TEST(std::ldexp(floats[i], 24) == one->weights[i]);
  BOOST_TEST((read_start_weights(golden_path(), layout, 20).value()->hash != one->hash));
  BOOST_TEST((sha256({reinterpret_cast<const std::uint8_t*>(one->weights.data()), 4 * one->weights.size()}) ==
              one->hash));
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_named) {
  const Scratch scratch;
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const auto write = [&](const std::string& name, std::vector<std::uint32_t> shape) {
    const SafetensorsTensor tensor{name, std::move(shape), values};
    BOOST_REQUIRE(write_safetensors(scratch / "w.safetensors", {&tensor, 1}).ok());
  };
  const auto says = [&](const std::vector<TensorInfo>& tensors) {
    const auto read = read_start_weights(scratch / "w.safetensors", layout_with(tensors), 24);
    return read ? "" : scratch.cut(read.error().text);
  };
  const std::string fix = "; it must be of the model that the run file describes";
  BOOST_TEST(says({{"0.weight", {2, 3}}}) == "there is no file w.safetensors");
  write("0.weight", {2, 3});
  BOOST_TEST(says({{"0.weight", {2, 3}}}) == "");
  BOOST_TEST(says({{"0.weight", {3, 2}}}) ==
             "w.safetensors: tensor 0.weight is [2, 3], the model wants [3, 2]" + fix);
  BOOST_TEST(says({{"0.weight", {2, 3}}, {"0.bias", {3}}}) ==
             "w.safetensors: tensor 0.bias is missing" + fix);
  write("module.0.weight", {6});
  BOOST_TEST(says({{"0.weight", {6}}}) == "");
  const SafetensorsTensor two[] = {{"a", {6}, values}, {"b", {6}, values}};
  BOOST_REQUIRE(write_safetensors(scratch / "w.safetensors", two).ok());
  BOOST_TEST(says({{"a", {6}}}) == "w.safetensors: the model has no tensor b" + fix);
  const SafetensorsTensor old[] = {{"a", {6}, values}, {"model.layers.0.self_attn.rotary_emb.inv_freq", {6}, values}};
  BOOST_REQUIRE(write_safetensors(scratch / "w.safetensors", old).ok());
  BOOST_TEST(says({{"a", {6}}}) == "");
  const SafetensorsTensor cut[] = {{"a", {6}, values}, {"exit.1.weight", {6}, values}, {"exit.12.bias", {6}, values}};
  BOOST_REQUIRE(write_safetensors(scratch / "w.safetensors", cut).ok());
  BOOST_TEST(says({{"a", {6}}}) == "");
  BOOST_TEST(says({{"a", {6}}, {"exit.1.weight", {6}}}) == "");
  for (const char* other : {"exit.weight", "exit.1.scale", "exit.x.weight"}) {
    const SafetensorsTensor odd[] = {{"a", {6}, values}, {other, {6}, values}};
    BOOST_REQUIRE(write_safetensors(scratch / "w.safetensors", odd).ok());
    BOOST_TEST(says({{"a", {6}}}) == "w.safetensors: the model has no tensor " + std::string(other) + fix);
  }
  const std::vector<float> large = {1, -128.5f}, broken = {NAN, 0};
  for (const auto& [bad, text] :
       {std::pair{large, "tensor a holds -128.5 at position 1"},
        {broken, "tensor a holds nan at position 0; weights must be finite"}}) {
    const SafetensorsTensor tensor{"a", {2}, bad};
    BOOST_REQUIRE(write_safetensors(scratch / "w.safetensors", {&tensor, 1}).ok());
    BOOST_TEST(says({{"a", {2}}}).find(text) != std::string::npos, says({{"a", {2}}}));
  }
}

BOOST_AUTO_TEST_CASE(halves_are_floats) {
  // zero, minus zero, the least denormal, the largest, one third, minus two, infinity: in F16 and in BF16
  const Bytes halves = {0x00, 0x00, 0x00, 0x80, 0x01, 0x00, 0xff, 0x7b, 0x55, 0x35, 0x00, 0xc0, 0x00, 0x7c};
  const auto floats_as = [&](const char* dtype) {
    std::string header =
        std::string(R"({"x":{"dtype":")") + dtype + R"(","shape":[7],"data_offsets":[0,14]}})";
    Bytes file = {static_cast<std::uint8_t>(header.size()), 0, 0, 0, 0, 0, 0, 0};
    file.insert(file.end(), header.begin(), header.end());
    file.insert(file.end(), halves.begin(), halves.end());
    const auto parsed = SafetensorsFile::parse(file).value();
    return parsed.floats(*parsed.find("x")).value();
  };
  BOOST_TEST(
      (floats_as("F16") == std::vector<float>{0, -0.0f, 0x1p-24f, 65504, 0.333251953125f, -2, INFINITY}));
  BOOST_TEST(std::signbit(floats_as("F16")[1]));
  BOOST_TEST(floats_as("BF16")[5] == -2);
  BOOST_TEST(floats_as("BF16")[3] == 0x1.fep120f);
}

BOOST_AUTO_TEST_CASE(a_config_of_transformers_is_read_and_ours_says_the_same) {
  const auto read = parse_model_json(text_of(golden_path("/config.json")), "config.json");
  BOOST_REQUIRE(read.ok());
  for (const ModelConfig& config : {*read, parse_model_json(model_json(tiny()), "ours").value()}) {
    BOOST_TEST(config.family == "gpt");
    BOOST_TEST((config.vocabulary == 7 && config.context == 4 && config.embedding == 4));
    BOOST_TEST((config.layers == 1 && config.heads == 2));
  }
  const auto says = [](const std::string& text) {
    const auto parsed = parse_model_json(text, "c.json");
    return parsed ? "" : parsed.error().text;
  };
  BOOST_TEST(says("[1, 2") == "c.json is not a JSON object");
  BOOST_TEST(says(R"({"model_type": "bert"})") ==
             "c.json is of model_type \"bert\"; only gpt2, llama, mistral and qwen2 are supported");
  std::string other = model_json(tiny());
  other.replace(other.find("gelu_new"), 8, "relu");
  BOOST_TEST(says(other) ==
             "c.json wants activation_function = \"relu\"; only \"gelu_new\" is computed here");
  other = model_json(tiny());
  other.replace(other.find("\"n_head\": 2"), 11, "\"n_head\": 0");
  BOOST_TEST(says(other) == "c.json has no number n_head from 1 to 1048576");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
