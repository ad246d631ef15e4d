// Checkpoints in shards: read like a whole file, written and read again, and every fault named with file and tensor.
#include "models/weights/weight_files.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <filesystem>
#include <set>

#include "models/weights/safetensors_writer.h"
#include "models/weights/shard_index.h"
#include "models/weights/start_weights.h"
#include "models/weights/weight_shards.h"
#include "tests/unit/models/scratch.h"

namespace rumor::models {
namespace {

const std::vector<float> six_values = {1, 2, 3, 4, 5, 6}, two_values = {0.5f, -7};

ParamLayout three_tensors() {
  return ParamLayout::create({{"a", {2, 3}}, {"b", {2}}, {"c", {6}}}).value();
}

std::vector<SafetensorsTensor> tensors_as(const std::string& dtype) {
  return {{"a", {2, 3}, six_values, dtype}, {"b", {2}, two_values, dtype}, {"c", {6}, six_values, dtype}};
}

std::set<std::string> files_inside(const Scratch& scratch) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(scratch / "")) names.insert(entry.path().filename());
  return names;
}

// The error of reading the folder, without its path; empty if it was read.
std::string weights_refusal(const Scratch& scratch, const std::string& name = "") {
  const auto read = read_named_weights(scratch / name, three_tensors());
  return read ? "" : scratch.cut(read.error().text);
}

bool text_says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

BOOST_AUTO_TEST_SUITE(weight_files)

BOOST_AUTO_TEST_CASE(shards_of_every_format_are_read_as_one_checkpoint) {
  std::vector<float> all = six_values;
  all.insert(all.end(), two_values.begin(), two_values.end());
  all.insert(all.end(), six_values.begin(), six_values.end());
  for (const std::string dtype : {"F32", "BF16", "F16"}) {
    const Scratch scratch;
    const std::uint64_t shard_bytes = dtype == "F32" ? 32 : 16;  // of a and b
    BOOST_REQUIRE(write_checkpoint(scratch / "", tensors_as(dtype), {{"format", "pt"}}, shard_bytes).ok());
    BOOST_TEST(WeightFiles::file_in(scratch / "").ends_with("/model.safetensors.index.json"));
    BOOST_TEST(files_inside(scratch).size() == 3u, dtype);
    const auto read = read_named_weights(scratch / "", three_tensors());
    BOOST_REQUIRE(read.ok());
    BOOST_TEST((*read == all), dtype);
    const auto start = read_start_weights(scratch / "model.safetensors.index.json", three_tensors(), 24);
    BOOST_REQUIRE(start.ok());
    for (std::size_t i = 0; i < all.size(); ++i) BOOST_TEST((*start)->weights[i] == std::ldexp(all[i], 24));
  }
}

BOOST_AUTO_TEST_CASE(a_checkpoint_replaces_the_one_before_it) {
  const Scratch scratch;
  BOOST_REQUIRE(write_checkpoint(scratch / "", tensors_as("F32"), {}, 1000).ok());
  BOOST_TEST((files_inside(scratch) == std::set<std::string>{"model.safetensors"}));
  scratch.write("config.json", std::string_view("{}"));
  BOOST_REQUIRE(write_checkpoint(scratch / "", tensors_as("F32"), {}, 1).ok());
  BOOST_TEST((files_inside(scratch) ==
              std::set<std::string>{"config.json", "model-00001-of-00003.safetensors",
                                    "model-00002-of-00003.safetensors", "model-00003-of-00003.safetensors",
                                    "model.safetensors.index.json"}));
  BOOST_REQUIRE(write_checkpoint(scratch / "", tensors_as("BF16"), {}, 1000).ok());
  BOOST_TEST((files_inside(scratch) == std::set<std::string>{"config.json", "model.safetensors"}));
}

BOOST_AUTO_TEST_CASE(a_value_beyond_the_format_leaves_the_folder_as_it_was) {
  const Scratch scratch;
  const std::vector<float> large = {1, 70'000};
  const SafetensorsTensor tensors[] = {{"a", {2}, two_values, "F16"}, {"b", {2}, large, "F16"}};
  const auto refused = write_checkpoint(scratch / "", tensors, {}, 4);
  BOOST_REQUIRE(!refused.ok());
  BOOST_TEST(refused.error().text == "tensor b holds 70000, which F16 cannot hold; write F32 or BF16");
  BOOST_TEST(files_inside(scratch).empty());
}

BOOST_AUTO_TEST_CASE(faults_name_file_and_tensor) {
  const Scratch scratch;
  const std::string none = "there is no model.safetensors and no model.safetensors.index.json in";
  BOOST_TEST(text_says(weights_refusal(scratch), none));
  BOOST_REQUIRE(write_checkpoint(scratch / "", tensors_as("F32"), {}, 1).ok());
  const auto index = [&](const std::string& text) {
    scratch.write("model.safetensors.index.json", std::string_view(text));
    return weights_refusal(scratch);
  };
  const std::string one = "model-00001-of-00003.safetensors";
  const std::string three = "model-00003-of-00003.safetensors";
  const auto fault = [&](const std::string& map, const std::string& part) {
    const std::string text = index(R"({"weight_map":{)" + map + "}}");
    BOOST_TEST(text_says(text, part), text);
  };
  fault(R"("a":"gone.safetensors")", "names the shard gone.safetensors, which is");
  fault(R"("d":")" + one + "\"", "tensor d is not in " + one + ", where the index");
  fault(R"("a":")" + three + R"(","c":")" + one + "\"", "tensor a is not in " + three);
  fault(R"("a":")" + one + "\"", "tensor b is missing");
  std::filesystem::copy_file(scratch / one, scratch / "again.safetensors");
  fault(R"("a":")" + one + R"(","b":"again.safetensors")", "tensor a is in ");
  std::filesystem::resize_file(scratch / three, std::filesystem::file_size(scratch / three) - 4);
  const std::string cut = weights_refusal(scratch, three);
  BOOST_TEST((text_says(cut, three) && text_says(cut, "tensor 'c'") && text_says(cut, "cut short")), cut);
}

BOOST_AUTO_TEST_CASE(values_that_are_not_finite_are_refused) {
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    const Scratch scratch;
    const std::vector<float> broken = {0, bad};
    const SafetensorsTensor tensors[] = {{"a", {2, 3}, six_values}, {"b", {2}, broken, "BF16"}, {"c", {6}, six_values}};
    BOOST_REQUIRE(write_checkpoint(scratch / "", tensors, {}, 1).ok());
    const std::string text = weights_refusal(scratch);
    BOOST_TEST((text_says(text, "model-00002-of-00003.safetensors: tensor b holds ") &&
                text_says(text, " at position 1; weights must be finite")), text);
    BOOST_TEST((read_start_weights(scratch / "", three_tensors(), 24).error().code == Errc::limit));
  }
}

// A mapped file would kill the process there.
BOOST_AUTO_TEST_CASE(a_file_that_is_cut_while_it_is_read_is_an_error) {
  const Scratch scratch;
  BOOST_REQUIRE(write_checkpoint(scratch / "", tensors_as("F32"), {}, 1000).ok());
  const auto files = WeightFiles::open(scratch / "");
  BOOST_REQUIRE(files.ok());
  BOOST_TEST(read_named_weights(*files, three_tensors()).ok());
  const std::uint64_t header = std::filesystem::file_size(scratch / "model.safetensors") - 56;
  for (const std::uint64_t left : {header + 30, header, std::uint64_t{0}}) {
    std::filesystem::resize_file(scratch / "model.safetensors", left);
    const auto read = read_named_weights(*files, three_tensors());
    BOOST_REQUIRE(!read.ok());
    BOOST_TEST((read.error().code == Errc::corrupt));
    const std::string tensor = left == header + 30 ? "b" : "a";
    const std::string wanted = "model.safetensors: tensor " + tensor + ": the file has become shorter while";
    BOOST_TEST(text_says(read.error().text, wanted), read.error().text);
  }
}

BOOST_AUTO_TEST_CASE(an_index_is_checked) {
  const auto fault = [](const std::string& text) {
    const auto index = parse_shard_index(text, "i");
    return index ? "" : index.error().text;
  };
  BOOST_TEST(fault(R"({"metadata":{"total_size":5},"weight_map":{"a":"x","b":"sub/y"}})") == "");
  BOOST_TEST(fault("{") == "i: it is not valid JSON at byte 2");
  BOOST_TEST(fault("[]") == "i: it is a list, not an object");
  BOOST_TEST(fault("{}") == "i: there is no object weight_map of tensors and files");
  BOOST_TEST(fault(R"({"weight_map":{}})") == "i: weight_map names no tensors");
  BOOST_TEST(fault(R"({"weight_map":5})") == "i: weight_map is a number, not an object");
  BOOST_TEST(fault(R"({"weight_map":{"a":5}})") == "i: tensor 'a' is a number, not a file name");
  BOOST_TEST(fault(R"({"weight_map":{"a":{}}})") == "i: tensor 'a' is an object, not a file name");
  BOOST_TEST(fault(R"({"weight_map":{"a":"x","a":"y"}})") == "i: tensor 'a' stands twice");
  BOOST_TEST(fault(R"({"weight_map":{"a":"x"},"weight_map":{}})") == "i: weight_map stands twice");
  for (const char* path : {"", "/etc/x", "../x", "s/../../x", "..", "s/", "a\\u0000b"})
    BOOST_TEST(text_says(fault(std::string(R"({"weight_map":{"a":")") + path + "\"}}"),
                    "i: tensor 'a' is said to be in '"), path);
}

BOOST_AUTO_TEST_CASE(shards_hold_as_many_tensors_as_fit) {
  using Cuts = std::vector<std::pair<std::size_t, std::size_t>>;
  const auto tensors = tensors_as("F32");  // 24, 8 and 24 bytes
  BOOST_TEST((cut_into_shards(tensors, 56) == Cuts{{0, 3}}));
  BOOST_TEST((cut_into_shards(tensors, 55) == Cuts{{0, 2}, {2, 3}}));
  BOOST_TEST((cut_into_shards(tensors, 31) == Cuts{{0, 1}, {1, 2}, {2, 3}}));
  BOOST_TEST((cut_into_shards(tensors, 1) == Cuts{{0, 1}, {1, 2}, {2, 3}}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
