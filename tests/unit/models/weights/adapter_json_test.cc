// adapter_config.json in and out, and adapters merged into the base that they were trained for.
#include "models/weights/adapter_json.h"

#include <boost/test/unit_test.hpp>

#include "models/weights/frozen_base.h"
#include "models/weights/merged_weights.h"
#include "models/weights/safetensors_writer.h"
#include "tests/unit/models/families/gpt_config.h"
#include "tests/unit/models/scratch.h"

namespace rumor::models {
namespace {

// As PEFT 0.21 writes it, but for members that say nothing here.
constexpr std::string_view peft_text = R"({
  "alpha_pattern": {}, "base_model_name_or_path": "base", "bias": "none", "fan_in_fan_out": true,
  "inference_mode": true, "layers_pattern": null, "layers_to_transform": null, "lora_alpha": 16, "lora_dropout": 0.1,
  "modules_to_save": null, "peft_type": "LORA", "r": 2, "rank_pattern": {}, "target_modules": ["c_attn", "c_fc"],
  "task_type": "CAUSAL_LM", "use_dora": false, "use_rslora": false
})";

std::string with_member(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  BOOST_REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(adapter_files)

BOOST_AUTO_TEST_CASE(descriptions_are_those_of_peft) {
  const auto read = parse_adapter_json(peft_text, "a.json").value();
  for (const AdapterDescription& one : {read, parse_adapter_json(adapter_json(read), "ours").value()}) {
    BOOST_TEST(one.family == "gpt");
    BOOST_TEST(one.adapter.kind == "lora");
    BOOST_TEST(one.adapter.rank == 2u);
    BOOST_TEST(one.adapter.alpha == 16.0);
    BOOST_TEST((one.adapter.targets == std::vector<std::string>{"c_attn", "c_fc"}));
    BOOST_TEST(one.base == "base");
    BOOST_TEST(one.base_hash == "");
  }
  AdapterDescription usual{"llama", {.kind = "lora", .rank = 4, .alpha = 0.5}, "b", "12"};
  const std::string text = adapter_json(usual);
  BOOST_TEST(text.find("\"q_proj\"") != std::string::npos);
  const auto again = parse_adapter_json(text, "ours").value();
  BOOST_TEST(again.family == "llama");
  BOOST_TEST(again.adapter.alpha == 0.5);
  BOOST_TEST(again.base_hash == "12");
}

BOOST_AUTO_TEST_CASE(descriptions_of_more_are_refused_by_name) {
  const std::string text(peft_text);
  for (const auto& [from, to, words] : std::initializer_list<std::tuple<const char*, const char*, const char*>>{
           {"\"LORA\"", "\"LOHA\"", "a.json wants peft_type = \"LOHA\"; only \"LORA\" is computed here"},
           {"\"use_dora\": false", "\"use_dora\": true", "a.json wants use_dora = true"},
           {"\"bias\": \"none\"", "\"bias\": \"all\"", "a.json wants bias = \"all\""},
           {"\"r\": 2", "\"r\": 0", "a.json has no number r from 1 to 4096"},
           {"\"lora_alpha\": 16", "\"lora_alpha\": -1", "a.json has no number lora_alpha above 0"},
           {"[\"c_attn\", \"c_fc\"]", "\".*\"", "a.json has no list target_modules"},
           {"[\"c_attn\", \"c_fc\"]", "[1]", "a.json has a target_modules that is no list of names"}}) {
    const auto parsed = parse_adapter_json(with_member(text, from, to), "a.json");
    BOOST_REQUIRE(!parsed.ok());
    BOOST_TEST(parsed.error().text.starts_with(words), parsed.error().text);
  }
  BOOST_TEST(parse_adapter_json("[]", "a.json").error().text == "a.json is not a JSON object");
}

BOOST_AUTO_TEST_CASE(adapters_merge_into_their_own_base_alone) {
  const Scratch scratch;
  const ModelConfig whole = test::gpt_config(11, 6, 1, 1, 2);
  const auto model = make_model(whole).value();
  const std::vector<float> weights(model->layout().params(), 0.5f), others(weights.size(), 0.25f);
  const auto save = [&](const std::string& name, std::span<const float> values) {
    std::vector<SafetensorsTensor> tensors;
    for (const TensorInfo& tensor : model->layout().tensors())
      tensors.push_back({tensor.name, tensor.shape, values.subspan(tensor.offset, tensor.size)});
    BOOST_REQUIRE(write_safetensors(scratch / name, tensors).ok());
  };
  save("base.safetensors", weights);
  save("other.safetensors", others);
  ModelConfig adapted = whole;
  adapted.adapter = {.kind = "lora", .rank = 2, .alpha = 4};
  const AdapterPlan plan = plan_adapters(adapted, *model).value();
  const std::vector<float> adapters(plan.layout.params(), 0.5f);
  const auto base = read_base(scratch / "base.safetensors", model->layout()).value();
  const AdapterDescription description{"gpt", adapted.adapter, scratch / "base.safetensors", base->hash.hex()};
  const auto merged = merge_into_base(description, whole, plan.layout, adapters, "").value();
  for (const TensorInfo& tensor : model->layout().tensors())
    for (std::uint32_t i = 0; i < tensor.size; ++i)
      BOOST_TEST(merged.weights[tensor.offset + i] == (tensor.name.ends_with("c_attn.weight") ? 1.5f : 0.5f));
  const auto error = [&](const ParamLayout& layout, const std::string& path) {
    return scratch.cut(merge_into_base(description, whole, layout, adapters, path).error().text);
  };
  BOOST_TEST(error(plan.layout, scratch / "other.safetensors").starts_with("the adapters belong to a base with the"));
  BOOST_TEST(error(plan.layout, scratch / "none").find("name it with --weights FOLDER") != std::string::npos);
  BOOST_TEST(error(model->layout(), "").starts_with("the adapters are not those"));
}

BOOST_AUTO_TEST_CASE(a_base_is_read_where_there_are_adapters) {
  const Scratch scratch;
  ModelConfig config = test::gpt_config(0, 6, 1, 1, 2);
  const DataConfig text{.kind = "text"};
  BOOST_TEST(open_base_of("", text, config).ok());
  BOOST_TEST((config.adapter.base == nullptr));
  config.adapter.kind = "lora";
  BOOST_TEST(open_base_of("", text, config).error().text.find("--weights FOLDER") != std::string::npos);
  BOOST_TEST(open_base_of(scratch / "none", text, config).error().text.find("none") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
