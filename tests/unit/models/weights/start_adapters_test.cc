// A run of adapters that begins with a folder of PEFT: values and names, and every key that differs is named.
#include "models/weights/start_adapters.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "models/weights/adapter_json.h"
#include "models/weights/safetensors_writer.h"
#include "tests/unit/models/families/gpt_config.h"
#include "tests/unit/models/scratch.h"

namespace rumor::models {
namespace {

// A small GPT with adapters of rank 2 beside c_attn, and their folder.
struct AdapterFolder {
  AdapterFolder() {
    config = test::gpt_config(11, 6, 1, 1, 4);
    whole = make_model(config).value();
    config.adapter = {.kind = "lora", .rank = 2, .alpha = 4};
    auto base = std::make_shared<FrozenBase>();
    base->weights.assign(whole->layout().params(), 0.5f);
    base->hash.bytes[0] = 7;
    config.adapter.base = base;
    plan = plan_adapters(config, *whole).value();
    for (std::uint32_t i = 0; i < plan.layout.params(); ++i) values.push_back(0.25f * static_cast<float>(i));
    write(description(), plan.layout, {});
  }

  AdapterDescription description() const { return {"gpt", config.adapter, "base", ""}; }

  void write(const AdapterDescription& told, const ParamLayout& layout, const SafetensorsMetadata& metadata) {
    scratch.write("a/adapter_config.json", std::string_view(adapter_json(told)));
    std::vector<SafetensorsTensor> tensors;
    for (const TensorInfo& tensor : layout.tensors())
      tensors.push_back({tensor.name, tensor.shape, std::span(values).subspan(tensor.offset, tensor.size)});
    BOOST_REQUIRE(write_safetensors(scratch / "a/adapter_model.safetensors", tensors, metadata).ok());
  }

  // Empty if it was read.
  std::string refusal() const {
    const auto read = read_start_adapters(scratch / "a", config, plan.layout, 20);
    return read ? "" : scratch.cut(read.error().text);
  }

  Scratch scratch;
  ModelConfig config;
  std::unique_ptr<Model> whole;
  AdapterPlan plan;
  std::vector<float> values;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(start_adapters)

BOOST_AUTO_TEST_CASE(values_become_weights_on_the_grid) {
  const AdapterFolder folder;
  const auto start = read_start_adapters(folder.scratch / "a", folder.config, folder.plan.layout, 20).value();
  BOOST_TEST_REQUIRE(start->weights.size() == folder.values.size());
  for (std::size_t i = 0; i < folder.values.size(); ++i)
    BOOST_TEST(start->weights[i] == std::ldexp(folder.values[i], 20));
}

BOOST_AUTO_TEST_CASE(each_key_of_another_value_is_named) {
  AdapterFolder folder;
  const AdapterDescription same = folder.description();
  const auto with = [&](const std::function<void(AdapterConfig&)>& change) {
    AdapterDescription told = same;
    change(told.adapter);
    folder.write(told, folder.plan.layout, {});
    return folder.refusal();
  };
  BOOST_TEST(with([](AdapterConfig&) {}) == "");
  BOOST_TEST(with([](AdapterConfig& a) { a.rank = 3; }) ==
             "a/adapter_config.json has r = 3, and this run has model.adapter_rank = 2; set model.adapter_rank = 3, or "
             "start from other adapters");
  BOOST_TEST(with([](AdapterConfig& a) { a.alpha = 0.5; }) ==
             "a/adapter_config.json has lora_alpha = 0.5, and this run has model.adapter_alpha = 4; set "
             "model.adapter_alpha = 0.5, or start from other adapters");
  BOOST_TEST(with([](AdapterConfig& a) { a.targets = {"c_fc", "attn.c_attn"}; }) ==
             "a/adapter_config.json has target_modules = [\"c_fc\", \"attn.c_attn\"], and this run has "
             "model.adapter_targets = [\"c_attn\"]; set model.adapter_targets = [\"c_fc\", \"attn.c_attn\"], or "
             "start from other adapters");
  BOOST_TEST(with([](AdapterConfig& a) { a.targets = {"attn.c_attn"}; }) == "");  // another name of the same
  BOOST_TEST(with([](AdapterConfig& a) { a.targets = {"q_proj"}; }).starts_with("a/adapter_config.json: model."));
}

BOOST_AUTO_TEST_CASE(another_base_and_other_tensors_are_named) {
  AdapterFolder folder;
  const std::string own = folder.config.adapter.base->hash.hex(), other(64, '1');
  folder.write(folder.description(), folder.plan.layout, {{"base_sha256", own}});
  BOOST_TEST(folder.refusal() == "");
  folder.write(folder.description(), folder.plan.layout, {{"base_sha256", other}});
  BOOST_TEST(folder.refusal().starts_with(
      "a/adapter_model.safetensors belongs to a base with the SHA-256 1111111111111111..., and the one in "
      "model.weights has 0700"));
  AdapterDescription told = folder.description();
  told.base_hash = other;
  folder.write(told, folder.plan.layout, {});
  BOOST_TEST(folder.refusal().find("belongs to a base") != std::string::npos);

  std::vector<TensorInfo> shapes = folder.plan.layout.tensors();
  std::swap(shapes[0].shape[0], shapes[0].shape[1]);
  const std::string name = shapes[0].name;
  folder.write(folder.description(), ParamLayout::create(shapes).value(), {});
  BOOST_TEST(folder.refusal() == "a/adapter_model.safetensors: tensor " + name +
                                     " is [4, 2], the model wants [2, 4]; it must be of the model that the run file "
                                     "describes");
  std::filesystem::remove(folder.scratch / "a/adapter_model.safetensors");
  BOOST_TEST(folder.refusal() == "there is no file a/adapter_model.safetensors");
  std::filesystem::remove(folder.scratch / "a/adapter_config.json");
  BOOST_TEST(folder.refusal().starts_with("there is no a/adapter_config.json; model.adapter_start (--adapters) wants"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
