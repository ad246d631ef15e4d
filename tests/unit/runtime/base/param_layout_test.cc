#include "runtime/base/param_layout.h"

#include <boost/test/unit_test.hpp>

#include "runtime/base/bytes.h"
#include "runtime/base/limits.h"
#include "runtime/base/text.h"

namespace rumor {
namespace {

TensorInfo tensor(std::string name, std::vector<std::uint32_t> shape) {
  TensorInfo info;
  info.name = std::move(name);
  info.shape = std::move(shape);
  return info;
}

ParamLayout layout(std::vector<TensorInfo> tensors) {
  return ParamLayout::create(std::move(tensors)).value();
}

void check_refused(std::vector<TensorInfo> tensors) {
  const auto result = ParamLayout::create(std::move(tensors));
  BOOST_TEST_REQUIRE(!result.ok());
  BOOST_TEST((result.error().code == Errc::limit));
  BOOST_TEST(!result.error().text.empty());
  BOOST_TEST(result.error().text.find('\n') == std::string::npos);
}

BOOST_AUTO_TEST_SUITE(param_layout)

BOOST_AUTO_TEST_CASE(tensors_lie_one_after_another) {
  const ParamLayout mlp = layout({tensor("fc1.weight", {128, 784}), tensor("fc1.bias", {128}),
                                  tensor("scale", {}), tensor("conv.weight", {8, 3, 5, 5})});
  const auto& tensors = mlp.tensors();
  BOOST_TEST_REQUIRE(tensors.size() == 4u);
  BOOST_TEST(tensors[0].offset == 0u);
  BOOST_TEST(tensors[0].size == 128u * 784);
  BOOST_TEST(tensors[1].offset == 128u * 784);
  BOOST_TEST(tensors[1].size == 128u);
  BOOST_TEST(tensors[2].offset == 128u * 785);
  BOOST_TEST(tensors[2].size == 1u);
  BOOST_TEST(tensors[3].offset == 128u * 785 + 1);
  BOOST_TEST(mlp.params() == 128u * 785 + 1 + 600);
}

BOOST_AUTO_TEST_CASE(rows_are_the_first_dimension_and_columns_the_rest) {
  const ParamLayout shapes =
      layout({tensor("a", {128, 784}), tensor("b", {10}), tensor("c", {}), tensor("d", {8, 3, 5})});
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> expected = {
      {128, 784}, {10, 1}, {1, 1}, {8, 15}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    BOOST_TEST(shapes.tensors()[i].rows() == expected[i].first);
    BOOST_TEST(shapes.tensors()[i].cols() == expected[i].second);
  }
}

BOOST_AUTO_TEST_CASE(offsets_and_sizes_given_are_ignored) {
  TensorInfo lying = tensor("a", {4});
  lying.offset = 99;
  lying.size = 99;
  const ParamLayout honest = layout({lying});
  BOOST_TEST(honest.tensors()[0].offset == 0u);
  BOOST_TEST(honest.params() == 4u);
}

BOOST_AUTO_TEST_CASE(what_names_nothing_or_twice_is_refused) {
  check_refused({});
  check_refused({tensor("", {4})});
  check_refused({tensor("a", {4}), tensor("b", {4}), tensor("a", {4})});
  check_refused({tensor("a", {4, 0})});
}

BOOST_AUTO_TEST_CASE(the_number_of_parameters_is_bounded) {
  constexpr std::uint32_t max = limits::params_max;
  BOOST_TEST(layout({tensor("all", {max})}).params() == max);
  BOOST_TEST(layout({tensor("all", {max - 1}), tensor("one", {})}).params() == max);
  check_refused({tensor("all", {max}), tensor("one", {})});
  check_refused({tensor("one more", {max + 1})});
  // Products that wrap around 32 or 64 bits must not look small.
  check_refused({tensor("wraps 32", {65'536, 65'536})});
  check_refused({tensor("wraps 64", {0xffff'ffff, 0xffff'ffff, 0xffff'ffff})});
  check_refused({tensor("zero after wrap", {65'536, 65'536, 65'536, 65'536})});
}

BOOST_AUTO_TEST_CASE(the_number_of_tensors_is_bounded) {
  std::vector<TensorInfo> tensors;
  for (std::size_t i = 0; i < limits::tensors_max; ++i) tensors.push_back(tensor(str("t", i), {1}));
  BOOST_TEST(layout(tensors).params() == limits::tensors_max);
  tensors.push_back(tensor("one more", {1}));
  check_refused(tensors);
}

// The expected hash was computed by hand-written code in another language from the canonical form.
BOOST_AUTO_TEST_CASE(hash_is_the_same_everywhere) {
  BOOST_TEST(layout({tensor("fc1.weight", {128, 784}), tensor("fc1.bias", {128})}).hash().hex() ==
             "89c9e326ff9edbc38606d793336945cf53bcbd11a16eb550e0608ff6fbbb385c");
}

BOOST_AUTO_TEST_CASE(encoded_layouts_read_back_and_damaged_ones_do_not) {
  const ParamLayout original =
      layout({tensor("fc1.weight", {128, 784}), tensor("scale", {}), tensor("fc1.bias", {128})});
  ByteWriter out;
  original.encode(out);
  ByteReader whole(out.bytes());
  const auto read = ParamLayout::decode(whole);
  BOOST_TEST_REQUIRE(read.ok());
  BOOST_TEST(whole.done());
  BOOST_TEST((read->hash() == original.hash()));
  BOOST_TEST(read->params() == original.params());
  BOOST_TEST(read->tensors()[2].offset == original.tensors()[2].offset);
  for (std::size_t size = 0; size < out.size(); ++size) {
    ByteReader cut(BytesView(out.bytes()).first(size));
    BOOST_TEST(!ParamLayout::decode(cut).ok(),
               "took " << size << " of " << out.size() << " bytes as a layout");
  }
}

BOOST_AUTO_TEST_CASE(hash_changes_with_names_shapes_and_order) {
  const auto hash = [](std::vector<TensorInfo> tensors) { return layout(std::move(tensors)).hash(); };
  const Hash256 original = hash({tensor("a", {2, 3}), tensor("b", {6})});
  BOOST_TEST((original == hash({tensor("a", {2, 3}), tensor("b", {6})})));
  BOOST_TEST((original != hash({tensor("a", {2, 3}), tensor("c", {6})})));
  BOOST_TEST((original != hash({tensor("a", {3, 2}), tensor("b", {6})})));
  BOOST_TEST((original != hash({tensor("a", {6}), tensor("b", {6})})));
  BOOST_TEST((original != hash({tensor("b", {6}), tensor("a", {2, 3})})));
  BOOST_TEST((original != hash({tensor("a", {2, 3})})));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace rumor
