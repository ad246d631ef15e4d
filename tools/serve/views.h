// Views: the content of a request to a tier (runtime/TIERS.md): pictures or features of one thing, as one sensor or
// several see it. And how sure an exit is.
//
// Thread: plain values and pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compress/border/border_codec.h"
#include "runtime/base/result.h"

namespace rumor::tools {

inline constexpr std::uint32_t views_max = 64;  // of one request

struct Views {
  std::vector<float> values;  // [count, floats], all finite
  std::uint32_t count = 0;    // at least 1
};

// Reads the body of a request. JSON: a list of numbers is one view, a list of such lists are several. Anything else:
// the bytes of compress::encode_border(), which are plain little-endian f32 where `numbers` is f32; views follow one
// another. `floats`: of one view. Errors: Errc::usage, naming the cause and the form that is expected.
Result<Views> read_views(const std::string& content_type, const std::string& body, compress::BorderNumbers numbers,
                         std::size_t floats);

// How the features of several sensors become those of one: the largest or the mean, value by value (as in DDNN). one:
// several are refused.
enum class Sensors : std::uint8_t { one, max, mean };

// [floats]. Requires: sensors is not `one`, or a single view.
std::vector<float> aggregate(Sensors sensors, const Views& views);

// The entropy of probabilities over that of equal ones: 0 where one class has all, 1 where all have the same. Requires:
// two classes or more, finite.
double normalised_entropy(std::span<const float> probability);

// The most probable class, the first of equals.
std::uint32_t best_class(std::span<const float> probability);

}  // namespace rumor::tools
