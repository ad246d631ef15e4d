// Files of updates and their figures, on small files made here.
#include "tools/stats/update_file.h"

#include <unistd.h>

#include <bit>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/base/bytes.h"
#include "runtime/base/prng.h"
#include "runtime/base/text.h"
#include "tools/stats/stats_file.h"

using namespace rumor;
using namespace rumor::tools;

BOOST_AUTO_TEST_SUITE(update_file)

namespace {

// Builds a safetensors file tensor by tensor.
class Builder {
 public:
  explicit Builder(const std::string& metadata = "")
      : header_(metadata.empty() ? "{" : "{\"__metadata__\":" + metadata) {}

  Builder& words(const std::string& name, const std::vector<std::uint32_t>& values) {
    ByteWriter out;
    for (const std::uint32_t value : values) out.u32(value);
    return add(name, "U32", str(values.size()), out.bytes());
  }
  Builder& bytes(const std::string& name, const Bytes& values) {
    return add(name, "U8", str(values.size()), values);
  }
  Builder& floats(const std::string& name, const std::string& shape, const std::vector<float>& values) {
    ByteWriter out;
    for (const float value : values) out.u32(std::bit_cast<std::uint32_t>(value));
    return add(name, "F32", shape, out.bytes());
  }
  Builder& raw(const std::string& name, const char* dtype, const std::string& shape, const Bytes& values) {
    return add(name, dtype, shape, values);
  }
  Bytes file() const {
    ByteWriter out;
    out.u64(header_.size() + 1);
    const std::string header = header_ + "}";
    out.raw({reinterpret_cast<const std::uint8_t*>(header.data()), header.size()});
    out.raw(data_);
    return out.take();
  }
  Result<UpdateFile> read() const { return UpdateFile::of(models::SafetensorsFile::parse(file()).value()); }

 private:
  Builder& add(const std::string& name, const char* dtype, const std::string& shape, const Bytes& values) {
    header_ += str(header_.size() > 1 ? "," : "", "\"", name, "\":{\"dtype\":\"", dtype, "\",\"shape\":[",
                   shape, "],\"data_offsets\":[", data_.size(), ",", data_.size() + values.size(), "]}");
    data_.insert(data_.end(), values.begin(), values.end());
    return *this;
  }
  std::string header_;
  Bytes data_;
};

// A file on disk for as long as the object lives.
struct OnDisk {
  std::string path;
  OnDisk(const char* name, const Bytes& bytes)
      : path((std::filesystem::temp_directory_path() / str(::getpid(), "_", name)).string()) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  ~OnDisk() { std::filesystem::remove(path); }
};

void refused(const Builder& builder, const std::string& word) {
  const Result<UpdateFile> file = builder.read();
  BOOST_TEST_REQUIRE(!file.ok());
  BOOST_TEST_CONTEXT(file.error().text) BOOST_TEST(file.error().text.find(word) != std::string::npos);
}

Builder dense_file(std::size_t steps) {
  Prng prng(51);
  Builder builder;
  for (std::size_t step = 0; step < steps; ++step) {
    std::vector<float> values(2000);
    for (float& value : values)
      value = static_cast<float>(prng.between(-1000, 1000) * prng.between(0, 1000)) / (1 << 26);
    builder.floats(str(step, "/w"), "40,50", values);
  }
  return builder;
}

}  // namespace

BOOST_AUTO_TEST_CASE(dense_steps_in_the_order_of_their_numbers) {
  const Result<UpdateFile> file =
      Builder().floats("10/a", "2,1", {1, 2}).floats("10/b/c", "1", {3}).floats("9/b/c", "1", {4}).read();
  BOOST_TEST_REQUIRE(file.ok());
  BOOST_TEST(file->dense());
  BOOST_TEST_REQUIRE(file->steps() == 2u);
  BOOST_TEST(file->number(0) == 9u);
  BOOST_TEST(file->layout().tensors()[1].name == "b/c");
  BOOST_TEST((file->change(0).value() == std::vector<float>{0, 0, 4}));
  BOOST_TEST((file->change(1).value() == std::vector<float>{1, 2, 3}));
}

BOOST_AUTO_TEST_CASE(dense_steps_of_every_float_format) {
  const Result<UpdateFile> file = Builder()
                                      .raw("0/a", "BF16", "2", {0xc0, 0x3f, 0x00, 0xc0})                    // 1.5, -2
                                      .raw("0/b", "F16", "1", {0x00, 0x34})                                 // 0.25
                                      .raw("0/c", "F64", "1", {0x9a, 0x99, 0x99, 0x99, 0x99, 0x99, 0xb9, 0xbf})  // -0.1
                                      .floats("1/a", "2", {3, 4})
                                      .read();
  BOOST_TEST_REQUIRE(file.ok());
  BOOST_TEST((file->change(0).value() == std::vector<float>{1.5f, -2, 0.25f, -0.1f}));
  BOOST_TEST((file->change(1).value() == std::vector<float>{3, 4, 0, 0}));
}

BOOST_AUTO_TEST_CASE(tensors_without_elements_are_not_counted) {
  const Result<UpdateFile> file =
      Builder().floats("0/none", "0,3", {}).floats("0/a", "2", {1, 2}).floats("1/none", "0,3", {}).read();
  BOOST_TEST_REQUIRE(file.ok());
  BOOST_TEST(file->steps() == 2u);
  BOOST_TEST(file->layout().params() == 2u);
  BOOST_TEST_REQUIRE(file->layout().tensors().size() == 1u);
  BOOST_TEST(file->layout().tensors()[0].name == "a");
  BOOST_TEST((file->change(0).value() == std::vector<float>{1, 2}));
  BOOST_TEST((file->change(1).value() == std::vector<float>{0, 0}));
  const Result<UpdateFile> sparse = Builder(R"({"none":"4,0","b":"4"})")
                                        .words("0/none.index", {})
                                        .bytes("0/none.sign", {})
                                        .words("0/b.index", {3})
                                        .bytes("0/b.sign", {1})
                                        .read();
  BOOST_TEST_REQUIRE(sparse.ok());
  BOOST_TEST((sparse->update(0).value() == compress::SparseUpdate{1, {3}, {1}}));
  refused(Builder().floats("0/none", "0,3", {}), "no updates");
  refused(Builder().floats("0/a", "0", {}).floats("1/a", "1", {1}), "another shape");
  refused(Builder(R"({"a":"0","b":"4"})").words("0/a.index", {0}).bytes("0/a.sign", {1}), "a shape without elements");
}

BOOST_AUTO_TEST_CASE(sparse_steps) {
  const Result<UpdateFile> file = Builder(R"({"a":"2,3","b":"4","format":"pt"})")
                                      .words("0/a.index", {1, 5})
                                      .bytes("0/a.sign", {0, 1})
                                      .words("1/b.index", {0})
                                      .bytes("1/b.sign", {1})
                                      .words("2/a.index", {})
                                      .bytes("2/a.sign", {})
                                      .read();
  BOOST_TEST_REQUIRE(file.ok());
  BOOST_TEST(!file->dense());
  BOOST_TEST(file->layout().params() == 10u);
  BOOST_TEST((file->update(0).value() == compress::SparseUpdate{1, {1, 5}, {0, 1}}));
  BOOST_TEST((file->update(1).value() == compress::SparseUpdate{1, {6}, {1}}));
  BOOST_TEST((file->update(2).value() == compress::SparseUpdate{}));
}

BOOST_AUTO_TEST_CASE(refusals_name_the_tensor) {
  refused(Builder(), "no updates");
  refused(Builder().floats("weight", "1", {1}), "'weight' is not named STEP/NAME");
  refused(Builder().floats("x/weight", "1", {1}), "'x/weight' is not named");
  refused(Builder().bytes("0/a", {1}), "is U8");
  refused(Builder().floats("0/a", "1", {1}).floats("1/a", "1,1", {1}), "another shape");
  refused(Builder().floats("1/a", "1", {1}).floats("01/a", "1", {1}), "twice in its step");
  refused(Builder().words("0/a.index", {}), "no shape in the metadata");
  refused(Builder(R"({"a":"2;3"})").words("0/a.index", {}), "not like");
  const std::string metadata = R"({"a":"2,3"})";
  refused(Builder(metadata).words("0/a.index", {1}), "'0/a' has no .sign");
  refused(Builder(metadata).bytes("0/a.sign", {1}), "'0/a' has no .index");
  refused(Builder(metadata).words("0/a.index", {1}).bytes("0/a.sign", {1, 0}), "more positions than signs");
  refused(Builder(metadata).words("0/a.index", {1}).bytes("0/a.sign", {1}).floats("0/b", "1", {1}),
          "mixes dense and");
}

BOOST_AUTO_TEST_CASE(entries_are_checked) {
  const auto update = [](const std::vector<std::uint32_t>& positions, const Bytes& signs) {
    return Builder(R"({"a":"2,3"})")
        .words("0/a.index", positions)
        .bytes("0/a.sign", signs)
        .read()
        .value()
        .update(0);
  };
  BOOST_TEST(update({0, 5}, {0, 1}).ok());
  BOOST_TEST(update({0, 6}, {0, 1}).error().text.find("beyond its 6") != std::string::npos);
  BOOST_TEST(update({5, 5}, {0, 1}).error().text.find("ascend at entry 1") != std::string::npos);
  BOOST_TEST(update({0, 5}, {2, 1}).error().text.find("sign 2 at entry 0") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(figures_of_a_sparse_file) {
  const OnDisk file("rumor_stats_sparse_test.safetensors", Builder(R"({"a":"4,4","b":"4"})")
                                                               .words("0/a.index", {3, 9})
                                                               .bytes("0/a.sign", {0, 1})
                                                               .words("0/b.index", {2})
                                                               .bytes("0/b.sign", {0})
                                                               .file());
  const Result<StatsReport> report = stats_of_update_file(file.path, {}, {});
  BOOST_TEST_REQUIRE(report.ok());
  const nlohmann::json json = nlohmann::json::parse(report->to_json());
  BOOST_TEST(json["source"] == file.path);
  BOOST_TEST(json["updates"] == 1);
  BOOST_TEST(json["params"] == 20);
  BOOST_TEST(json["entries"] == 3);
  BOOST_TEST(json["round_trip"] == "exact");
  BOOST_TEST(json["ratio"] == 20.0);  // 80 bytes in 4: the worked example with a step of one bit
  BOOST_TEST(json["layouts"].size() == 9u);
  BOOST_TEST(json["layouts"]["u32"] == 12);
  BOOST_TEST(json["tensors"][1]["name"] == "b");
  BOOST_TEST(json["tensors"][1]["bits_per_entry"] == 7.0);
  BOOST_TEST(json["tensors"][0]["threshold"] == 0.0);
  BOOST_TEST(report->to_table().find("20.0 times smaller") != std::string::npos);
  BOOST_TEST((stats_of_update_file(file.path, 0.1, {}).error().code == Errc::usage));
}

BOOST_AUTO_TEST_CASE(figures_of_a_dense_file) {
  const OnDisk file("rumor_stats_dense_test.safetensors", dense_file(5).file());
  const Result<StatsReport> report = stats_of_update_file(file.path, 0.01, {});
  BOOST_TEST_REQUIRE(report.ok());
  BOOST_TEST(report->updates == 5u);
  BOOST_TEST(report->entries == 5u * 20u);
  BOOST_TEST(report->round_trip_exact);
  BOOST_TEST(report->tensors[0].threshold > 0);
  BOOST_TEST(report->tensors[0].residual_rms > 0);
  BOOST_TEST((stats_of_update_file(file.path, 0.01, 100).error().code == Errc::usage));
  BOOST_TEST((stats_of_update_file(file.path, 1.5, {}).error().code == Errc::usage));
  BOOST_TEST((stats_of_update_file(file.path, {}, 3).error().code == Errc::usage));
}

BOOST_AUTO_TEST_CASE(a_budget_is_used_up_and_not_exceeded) {
  const OnDisk file("rumor_stats_budget_test.safetensors", dense_file(12).file());
  for (const std::uint64_t budget : {16u, 40u, 100u, 200u}) {
    const Result<StatsReport> report = stats_of_update_file(file.path, {}, budget);
    BOOST_TEST_REQUIRE(report.ok());
    BOOST_TEST(report->history.size() == 12u);
    for (const compress::UpdateFigures& update : report->history) BOOST_TEST(update.payload_bytes <= budget);
    // An entry takes a byte or two, so a small budget cannot be met closely.
    const double target = static_cast<double>(budget);
    BOOST_TEST(report->update_bytes_mean >= std::min(0.9 * target, target - 4));
  }
}

BOOST_AUTO_TEST_CASE(a_change_that_is_not_finite_names_step_and_tensor) {
  const OnDisk file("rumor_stats_nan_test.safetensors",
                    Builder()
                        .floats("3/a", "2", {1, 0})
                        .floats("4/a", "2", {std::bit_cast<float>(0x7fc0'0000u), 0})
                        .file());
  const Result<StatsReport> report = stats_of_update_file(file.path, 0.5, {});
  BOOST_TEST_REQUIRE(!report.ok());
  BOOST_TEST((report.error().code == Errc::limit));
  BOOST_TEST(report.error().text.find("step 4: tensor a has") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
