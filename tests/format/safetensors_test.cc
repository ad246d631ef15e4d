// safetensors: what is written comes back, and what others write is checked before it is used.
#include "models/weights/safetensors.h"
#include "models/weights/safetensors_writer.h"

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <limits>

#include "runtime/base/bytes.h"
#include "runtime/base/prng.h"
#include "runtime/base/text.h"

using namespace rumor;
using namespace rumor::models;

BOOST_AUTO_TEST_SUITE(safetensors)

namespace {

Bytes file_of(const std::string& header, std::size_t data_bytes) {
  ByteWriter out;
  out.u64(header.size());
  out.raw({reinterpret_cast<const std::uint8_t*>(header.data()), header.size()});
  out.raw(Bytes(data_bytes, 0));
  return out.take();
}

void refused(const Bytes& bytes, const std::string& word) {
  const Result<SafetensorsFile> file = SafetensorsFile::parse(bytes);
  BOOST_TEST_REQUIRE(!file.ok());
  BOOST_TEST((file.error().code == Errc::corrupt));
  BOOST_TEST_CONTEXT(file.error().text) {
    BOOST_TEST(file.error().text.find(word) != std::string::npos);
    BOOST_TEST(file.error().text.find("at byte ") != std::string::npos);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(written_bytes_are_those_of_the_format) {
  const std::vector<float> values{1.0f, -2.0f};
  const Bytes bytes =
      safetensors_bytes(std::vector<SafetensorsTensor>{{"w", {2, 1}, values}}, {{"format", "pt"}});
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}})";
  const std::size_t padded = (header.size() + 7) / 8 * 8;
  BOOST_TEST_REQUIRE(bytes.size() == 8 + padded + 8);
  BOOST_TEST(bytes[0] == padded);
  BOOST_TEST(std::string(bytes.begin() + 8, bytes.begin() + 8 + static_cast<std::ptrdiff_t>(header.size())) ==
             header);
  BOOST_TEST(to_hex(BytesView(bytes).last(8)) == "0000803f000000c0");
}

BOOST_AUTO_TEST_CASE(a_file_comes_back) {
  const std::string path =
      (std::filesystem::temp_directory_path() / str(::getpid(), "_rumor_safetensors_test")).string();
  const std::vector<float> first{1.5f, -0.0f, std::numeric_limits<float>::infinity()}, second{}, third{7};
  const std::vector<SafetensorsTensor> tensors{
      {"b", {3}, first}, {"a/\"x\"", {0, 4}, second}, {"scalar", {}, third}};
  BOOST_TEST_REQUIRE(write_safetensors(path, tensors, {{"k", "v"}}).ok());
  const Result<SafetensorsFile> file = SafetensorsFile::read(path);
  std::filesystem::remove(path);
  BOOST_TEST_REQUIRE(file.ok());
  BOOST_TEST(!std::filesystem::exists(path + ".part"));
  BOOST_TEST(file->metadata().at("k") == "v");
  BOOST_TEST_REQUIRE(file->entries().size() == 3u);
  BOOST_TEST(file->entries()[0].name == "b");
  BOOST_TEST((file->floats(file->entries()[0]).value() == first));
  const SafetensorsEntry* empty = file->find("a/\"x\"");
  BOOST_TEST_REQUIRE(empty != nullptr);
  BOOST_TEST((empty->shape == std::vector<std::uint64_t>{0, 4}));
  BOOST_TEST(file->floats(*empty).value().empty());
  BOOST_TEST(file->find("scalar")->elements() == 1u);
  BOOST_TEST(file->find("none") == nullptr);
  BOOST_TEST((file->words(file->entries()[0]).error().code == Errc::mismatch));
}

BOOST_AUTO_TEST_CASE(a_missing_file_and_an_unwritable_place) {
  const Result<SafetensorsFile> missing = SafetensorsFile::read("/nonexistent/x.safetensors");
  BOOST_TEST_REQUIRE(!missing.ok());
  BOOST_TEST((missing.error().code == Errc::not_found));
  const Result<void> unwritable = write_safetensors("/nonexistent/x.safetensors", {});
  BOOST_TEST_REQUIRE(!unwritable.ok());
  BOOST_TEST((unwritable.error().code == Errc::io));
}

BOOST_AUTO_TEST_CASE(a_file_of_another_kind_is_named) {
  for (const Bytes& bytes : {Bytes{'P', 'K', 3, 4, 0, 0, 8, 8}, Bytes{0x80, 2, 0x8a, 10, 0x6c, 0xfc, 0x9c, 0x46}}) {
    const auto refused = SafetensorsFile::parse(bytes);
    BOOST_REQUIRE(!refused.ok());
    BOOST_TEST(refused.error().text.find("torch.save()") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(damaged_headers) {
  refused({}, "shorter than");
  refused(Bytes(8, 0), "does not begin with");
  refused(Bytes(8, 0xff), "beyond the limit");
  refused(file_of("{}", 1), "belong to no tensor");
  refused(file_of("{\"a\":", 0), "not valid JSON");
  refused(file_of("[]", 0), "begin with");
  refused(file_of(R"({"a":5})", 0), "number stands");
  refused(file_of(R"({"a":{"b":{}}})", 0), "object stands");
  refused(file_of(R"({"a":{"dtype":"F32"}})", 0), "lacks");
  refused(file_of(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4), "negative");
  refused(file_of(R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", 4), "no whole number");
  refused(file_of(R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})", 4), "list stands");
  refused(file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4), "not two numbers");
  refused(file_of(R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})", 4), "unknown dtype");
  refused(file_of(R"({"__metadata__":{"a":1}})", 0), "number stands");
  refused(file_of("{" + std::string(5000, '['), 0), "damaged");
  Bytes cut = file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4);
  cut.resize(30);
  refused(cut, "cut short");
}

BOOST_AUTO_TEST_CASE(damaged_ranges) {
  const auto two = [](const char* first, const char* second, std::size_t data_bytes) {
    return file_of(str(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":)", first,
                       R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)", second, "}}"),
                   data_bytes);
  };
  BOOST_TEST(SafetensorsFile::parse(two("[0,8]", "[8,12]", 12)).ok());
  BOOST_TEST(SafetensorsFile::parse(two("[4,12]", "[0,4]", 12)).ok());
  refused(two("[0,8]", "[4,8]", 8), "overlaps");
  refused(two("[0,8]", "[9,13]", 13), "gap");
  refused(two("[0,8]", "[8,12]", 11), "outside");
  refused(two("[8,0]", "[8,12]", 12), "outside");
  refused(two("[0,7]", "[7,11]", 11), "does not fill");
  refused(two("[0,8]", "[8,12]", 13), "belong to no tensor");
  refused(file_of(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0),
          "does not fill");
  refused(file_of(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[0],)"
                  R"("data_offsets":[0,0]}})",
                  0),
          "used twice");
}

BOOST_AUTO_TEST_CASE(flipped_bits_never_reach_outside) {
  const std::vector<float> values{1, 2, 3};
  const Bytes good =
      safetensors_bytes(std::vector<SafetensorsTensor>{{"a", {3}, values}, {"b", {3}, values}}, {{"m", "n"}});
  std::size_t accepted = 0;
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    Bytes flipped = good;
    flipped[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    const Result<SafetensorsFile> file = SafetensorsFile::parse(flipped);
    if (!file.ok()) continue;
    ++accepted;
    for (const SafetensorsEntry& entry : file->entries()) BOOST_TEST_REQUIRE(file->all_of(entry).value().size() == 12u);
  }
  BOOST_TEST(accepted >= 8 * 24u);  // every bit of the data
}

BOOST_AUTO_TEST_SUITE_END()
