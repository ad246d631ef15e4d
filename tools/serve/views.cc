#include "tools/serve/views.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::tools {

namespace {

Error bad_request(const std::string& text) { return {Errc::usage, text}; }

Result<void> read_numbers(const nlohmann::json& list, std::size_t floats, std::vector<float>& out) {
  if (list.size() != floats)
    return bad_request(str("a view of ", list.size(), " numbers; this tier takes views of ", floats));
  for (const auto& number : list) {
    if (!number.is_number()) return bad_request("a view has something that is no number; send a list of numbers");
    const auto value = static_cast<float>(number.get<double>());
    if (!std::isfinite(value)) return bad_request("a view has a number that no f32 can hold; normalise the values");
    out.push_back(value);
  }
  return {};
}

Result<Views> read_json(const std::string& body, std::size_t floats) {
  const auto json = nlohmann::json::parse(body, nullptr, false);
  if (!json.is_array() || json.empty())
    return bad_request(str("the body is no JSON list; send ", floats, " numbers as [0.5, ...], or a list of such "
                           "lists, one for each view"));
  const bool is_one = !json.front().is_array();
  Views views{{}, is_one ? 1 : static_cast<std::uint32_t>(std::min<std::size_t>(json.size(), views_max + 1))};
  if (views.count > views_max) return bad_request(str("more than ", views_max, " views in one request"));
  if (is_one) {
    if (auto read = read_numbers(json, floats, views.values); !read) return read.error();
    return views;
  }
  for (const auto& view : json) {
    if (!view.is_array()) return bad_request("a list with both numbers and lists; send one list for each view");
    if (auto read = read_numbers(view, floats, views.values); !read) return read.error();
  }
  return views;
}

}  // namespace

Result<Views> read_views(const std::string& content_type, const std::string& body, compress::BorderNumbers numbers,
                         std::size_t floats) {
  RUMOR_CHECK(floats > 0);
  if (content_type.starts_with("application/json")) return read_json(body, floats);
  const std::size_t one = compress::border_bytes(numbers, 1, floats);
  if (body.empty() || body.size() % one != 0)
    return bad_request(str("a body of ", body.size(), " bytes; a view has ", one, " bytes here, ", floats,
                           " values. Send JSON as Content-Type: application/json"));
  if (body.size() / one > views_max) return bad_request(str("more than ", views_max, " views in one request"));
  Views views{{}, static_cast<std::uint32_t>(body.size() / one)};
  views.values.resize(views.count * floats);
  const BytesView bytes(reinterpret_cast<const std::uint8_t*>(body.data()), body.size());
  if (auto read = compress::decode_border(numbers, floats, bytes, views.values); !read)
    return bad_request("a view has a value that is not finite; send finite numbers");
  return views;
}

std::vector<float> aggregate(Sensors sensors, const Views& views) {
  RUMOR_CHECK(views.count >= 1 && (sensors != Sensors::one || views.count == 1));
  const std::size_t floats = views.values.size() / views.count;
  std::vector<float> out(views.values.begin(), views.values.begin() + static_cast<std::ptrdiff_t>(floats));
  for (std::size_t view = 1; view < views.count; ++view) {
    const float* const more = views.values.data() + view * floats;
    for (std::size_t i = 0; i < floats; ++i)
      out[i] = sensors == Sensors::max ? std::max(out[i], more[i]) : out[i] + more[i];
  }
  if (sensors == Sensors::mean)
    for (float& value : out) value /= static_cast<float>(views.count);
  return out;
}

double normalised_entropy(std::span<const float> probability) {
  RUMOR_CHECK(probability.size() >= 2);
  double entropy = 0;
  for (const float one : probability)
    if (one > 0) entropy -= static_cast<double>(one) * std::log(static_cast<double>(one));
  return std::clamp(entropy / std::log(static_cast<double>(probability.size())), 0.0, 1.0);
}

std::uint32_t best_class(std::span<const float> probability) {
  return static_cast<std::uint32_t>(std::max_element(probability.begin(), probability.end()) - probability.begin());
}

}  // namespace rumor::tools
