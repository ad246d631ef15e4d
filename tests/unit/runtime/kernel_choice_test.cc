// One choice holds for every family of kernels.
#include "runtime/base/kernel_choice.h"

#include <boost/test/unit_test.hpp>
#include <string>

#include "compress/payload/rice_kernels.h"
#include "compress/select/scan_kernels.h"
#include "models/kernels/kernels.h"
#include "runtime/replica/fingerprint_kernels.h"

using namespace rumor;

BOOST_AUTO_TEST_SUITE(kernel_choice)

BOOST_AUTO_TEST_CASE(portable_is_portable_everywhere) {
  BOOST_REQUIRE(choose_kernels("portable").ok());
  BOOST_TEST(std::string(models::kernels().name) == "portable");
  BOOST_TEST(std::string(compress::scan_kernels().name) == "portable");
  BOOST_TEST(std::string(compress::rice_kernels().name) == "portable");
  BOOST_TEST(std::string(fingerprint_kernels().name) == "portable");
  BOOST_REQUIRE(choose_kernels("").ok());
  BOOST_TEST((kernel_level() == best_kernel_level()));
}

BOOST_AUTO_TEST_CASE(a_family_without_a_set_uses_the_next_smaller_one) {
  const int small = 1, large = 2;
  const KernelSets<int> without_avx2{.portable = &small, .avx512 = &large}, only_portable{.portable = &small};
  BOOST_TEST(&without_avx2.at(KernelLevel::portable) == &small);
  BOOST_TEST(&without_avx2.at(KernelLevel::avx2) == &small);
  BOOST_TEST(&without_avx2.at(KernelLevel::avx512) == &large);
  BOOST_TEST(&only_portable.at(KernelLevel::avx512) == &small);
}

BOOST_AUTO_TEST_CASE(an_unknown_name_changes_nothing_and_names_what_there_is) {
  const KernelLevel before = kernel_level();
  const Result<void> refused = choose_kernels("sse9");
  BOOST_REQUIRE(!refused.ok());
  BOOST_TEST((refused.error().code == Errc::usage));
  BOOST_TEST(refused.error().text.find("'sse9'") != std::string::npos);
  BOOST_TEST(refused.error().text.find("portable") != std::string::npos);
  BOOST_TEST((kernel_level() == before));
}

BOOST_AUTO_TEST_SUITE_END()
