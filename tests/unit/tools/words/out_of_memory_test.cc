// The figures that a process reads about itself before it ends. tests/system/bad_input.py has the message.
#include "tools/words/out_of_memory.h"

#include <boost/test/unit_test.hpp>

using rumor::tools::bytes_in_status;

BOOST_AUTO_TEST_SUITE(out_of_memory)

BOOST_AUTO_TEST_CASE(a_figure_is_found_by_its_whole_name) {
  const char* const status = "Name:\trumor\nVmDataX:\t 1 kB\nVmData:\t  8120 kB\nVmStk:\t 132 kB";
  BOOST_TEST(bytes_in_status(status, "VmData") == 8120u * 1024);
  BOOST_TEST(bytes_in_status(status, "VmStk") == 132u * 1024);
}

BOOST_AUTO_TEST_CASE(a_figure_that_is_missing_or_cut_off_is_0) {
  BOOST_TEST(bytes_in_status("", "VmData") == 0u);
  BOOST_TEST(bytes_in_status("VmData", "VmData") == 0u);
  BOOST_TEST(bytes_in_status("VmData:", "VmData") == 0u);
  BOOST_TEST(bytes_in_status("VmData:\tnone kB\n", "VmData") == 0u);
  BOOST_TEST(bytes_in_status("Name:\tVmData: 5\n", "VmData") == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
