// Requests to a tier: whatever read_views() accepts is finite and of whole views, within the limit.
//
// The first byte of the input chooses JSON or the numbers, and the floats of a view; the rest is the body.
#include <cmath>

#include "runtime/base/check.h"
#include "tests/fuzz/target.h"
#include "tools/serve/views.h"

FUZZ_TARGET(views) {
  using namespace rumor;
  if (size == 0) return 0;
  const bool is_json = data[0] % 4 == 0;
  const auto numbers = static_cast<compress::BorderNumbers>(is_json ? 1 : data[0] % 4);
  const std::size_t floats = 1 + data[0] / 4 * 5;
  const std::string body(reinterpret_cast<const char*>(data + 1), size - 1);
  const auto views = tools::read_views(is_json ? "application/json" : "", body, numbers, floats);
  if (!views.ok()) {
    RUMOR_CHECK(!views.error().text.empty());
    return 0;
  }
  RUMOR_CHECK(views->count >= 1 && views->count <= tools::views_max);
  RUMOR_CHECK(views->values.size() == views->count * floats);
  for (const float value : views->values) RUMOR_CHECK(std::isfinite(value));
  RUMOR_CHECK(tools::aggregate(tools::Sensors::max, *views).size() == floats);
  return 0;
}
