// BOOST_AUTO_TEST_CASE(name, *rumor::test::not_sanitized()): a case that is left out, and counted as skipped, where a
// sanitizer makes everything several times as slow. For what is done with many, or for long, and by other cases with
// few, so that the sanitizer would see no other code; the bits are the same in the plain build.
#pragma once

#include <boost/test/unit_test.hpp>

#include "runtime/base/sanitized.h"

namespace rumor::test {

#if defined(RUMOR_SANITIZED)
using not_sanitized = boost::unit_test::enable_if<false>;
#else
using not_sanitized = boost::unit_test::enable_if<true>;
#endif

}  // namespace rumor::test
