// The main() of every Boost.Test program of the suite.
#define BOOST_TEST_MODULE rumor
#include <boost/test/unit_test.hpp>
