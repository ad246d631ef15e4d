// Means of buffers: right in each type, equal for all, and deaf to reports that are not of this model.
#include "runtime/training/outside/buffer_means.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <cstring>

#include "runtime/base/limits.h"

namespace rumor {

namespace {

using Type = SharedBuffer::Type;

// Two floats, a double, two upper halves of floats, a number of each width, a table that nobody changes, and a float of
// 16 bits.
const std::vector<SharedBuffer> shared_forms = {
    {"mean", Type::f32, 0, 2},   {"wide", Type::f64, 8, 1},   {"half", Type::bf16, 16, 2},  {"steps", Type::i64, 20, 1},
    {"small", Type::i32, 28, 1}, {"table", Type::f32, 32, 3}, {"binary16", Type::f16, 44, 1}};
constexpr std::size_t local_bytes = 46;

struct Memory {
  float mean[2] = {0, 0};
  double wide = 0;
  std::uint16_t half[2] = {0, 0};
  std::int64_t steps = 0;
  std::int32_t small = 0;
  float table[3] = {1, 2, 3};
  std::uint16_t binary16 = 0;

  Bytes bytes() const {
    Bytes all(local_bytes);
    std::uint8_t* to = all.data();
    const auto add = [&](const auto& value) {
      std::memcpy(to, &value, sizeof value);
      to += sizeof value;
    };
    add(mean), add(wide), add(half), add(steps), add(small), add(table), add(binary16);
    return all;
  }
};

BufferMeans means_at(const Memory& start) { return BufferMeans::create(shared_forms, start.bytes()).value(); }

NodeId node(std::uint8_t number) {
  NodeId id;
  id.bytes[0] = number;
  return id;
}

template <class Value>
Value value_at(const Bytes& memory, std::size_t where) {
  Value value;
  std::memcpy(&value, memory.data() + where, sizeof value);
  return value;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(buffer_means)

BOOST_AUTO_TEST_CASE(what_came_from_others_is_no_report) {
  BufferMeans means = means_at({});
  Bytes memory = Memory{}.bytes();
  means.show({{node(1), {100, means_at({}).report(Memory{{1, 3}, 0.5, {0, 0}, 7, 0}.bytes())}}}, memory);
  BOOST_TEST(value_at<float>(memory, 4) == 3.0f);
  BOOST_TEST(!means.report(memory).empty());
  means.begin_at(memory);
  BOOST_TEST(means.report(memory).empty());
  memory[0] ^= 1;  // now it has trained
  BOOST_TEST(!means.report(memory).empty());
}

BOOST_AUTO_TEST_CASE(floats_are_means_and_integers_the_greatest) {
  const BufferMeans means = means_at({});
  BOOST_TEST(means.report(Memory{}.bytes()).empty());
  const Memory one{{1, 3}, 0.5, {0x3f80, 0x4000}, 7, -5}, other{{2, -3}, 0.25, {0x4040, 0x4000}, 9, -8};
  const NodeBuffers all = {{node(1), {100, means.report(one.bytes())}}, {node(2), {90, means.report(other.bytes())}}};
  Bytes shown = other.bytes();
  means.show(all, shown);
  BOOST_TEST(value_at<float>(shown, 0) == 1.5f);
  BOOST_TEST(value_at<float>(shown, 4) == 0.0f);
  BOOST_TEST(value_at<double>(shown, 8) == 0.375);
  BOOST_TEST(value_at<std::uint16_t>(shown, 16) == 0x4000);  // of 1 and 3
  BOOST_TEST(value_at<std::int64_t>(shown, 20) == 9);
  BOOST_TEST(value_at<std::int32_t>(shown, 28) == -5);
  BOOST_TEST(value_at<float>(shown, 40) == 3.0f);
  Bytes elsewhere = one.bytes();
  means.show(all, elsewhere);
  BOOST_TEST((elsewhere == shown));
}

// Half-precision values: means of 1 and 2, of two denormals, of the largest, and not of one that is infinite.
BOOST_AUTO_TEST_CASE(floats_of_16_bits_are_means_too) {
  const BufferMeans means = means_at({});
  const auto mean = [&](std::uint16_t one, std::uint16_t other) {
    Memory first, second;
    first.binary16 = one;
    second.binary16 = other;
    Bytes shown = Memory{}.bytes();
    means.show({{node(1), {1, means.report(first.bytes())}}, {node(2), {1, means.report(second.bytes())}}}, shown);
    return value_at<std::uint16_t>(shown, 44);
  };
  BOOST_TEST(mean(0x3c00, 0x4000) == 0x3e00);
  BOOST_TEST(mean(0x0001, 0x0003) == 0x0002);
  BOOST_TEST(mean(0x7bff, 0x7bff) == 0x7bff);
  BOOST_TEST(mean(0x7c00, 0xc000) == 0xc000);
  BOOST_TEST((SharedBuffer::type_of("F16").value() == Type::f16));
}

BOOST_AUTO_TEST_CASE(equal_values_stay_as_they_are_to_the_last_bit) {
  const BufferMeans means = means_at({});
  NodeBuffers all;
  for (std::uint8_t i = 1; i <= 7; ++i)
    all[node(i)] = {1, means.report(Memory{{0.1f, 1e-30f}, 0.1, {}, 3, 0}.bytes())};
  Bytes shown = Memory{}.bytes();
  means.show(all, shown);
  BOOST_TEST(value_at<float>(shown, 0) == 0.1f);
  BOOST_TEST(value_at<float>(shown, 4) == 1e-30f);
  BOOST_TEST(value_at<double>(shown, 8) == 0.1);
}

BOOST_AUTO_TEST_CASE(peers_that_left_long_ago_do_not_count) {
  const BufferMeans means = means_at({});
  NodeBuffers all = {{node(1), {749, means.report(Memory{{8, 0}, 0, {}, 1, 0}.bytes())}},
                     {node(2), {1'000, means.report(Memory{{2, 0}, 0, {}, 1, 0}.bytes())}}};
  Bytes shown = Memory{}.bytes();
  means.show(all, shown);
  BOOST_TEST(value_at<float>(shown, 0) == 2.0f);
  all[node(1)].progress = 750;
  means.show(all, shown);
  BOOST_TEST(value_at<float>(shown, 0) == 5.0f);
}

BOOST_AUTO_TEST_CASE(what_is_no_report_of_this_model_is_skipped) {
  const BufferMeans means = means_at({});
  const Bytes good = means.report(Memory{{2, NAN}, 0, {}, 1, 0}.bytes());
  std::vector<SharedBuffer> renamed = shared_forms;
  renamed[0].name = "another";
  const BufferMeans others = BufferMeans::create(renamed, Memory{}.bytes()).value();
  Bytes longer = good, shorter = good;
  longer.push_back(0);
  shorter.pop_back();
  const NodeBuffers all = {{node(1), {5, good}},
                           {node(2), {50, longer}},
                           {node(3), {50, shorter}},
                           {node(4), {50, others.report(Memory{{9, 9}}.bytes())}},
                           {node(5), {50, {}}}};
  BOOST_TEST(means.fits(good));
  BOOST_TEST(!means.fits(all.at(node(4)).values));
  BOOST_TEST(!means.fits({}));
  Bytes shown = Memory{{6, 6}}.bytes();
  means.show(all, shown);
  BOOST_TEST(value_at<float>(shown, 0) == 2.0f);
  BOOST_TEST(value_at<float>(shown, 4) == 6.0f);  // nobody has a number for it
}

BOOST_AUTO_TEST_CASE(more_than_a_frame_holds_is_refused) {
  const std::size_t values = limits::buffers_bytes_max / 4;
  const auto made = BufferMeans::create({{"ema", Type::f32, 0, values}}, Bytes(4 * values));
  BOOST_REQUIRE(!made.ok());
  BOOST_TEST(made.error().text.find("leave the large ones out") != std::string::npos);
  BOOST_TEST(SharedBuffer::type_of("BOOL").error().text == "a buffer of type BOOL cannot be shared");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor
