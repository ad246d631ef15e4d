// parse_model_json on any bytes: it must refuse, or give numbers that can be written and read back.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "models/weights/model_json.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(model_json) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = rumor::models::parse_model_json(text, "input");
  if (!config && config.error().text.empty()) std::abort();
  if (!config) return 0;
  const auto again = rumor::models::parse_model_json(rumor::models::model_json(*config), "again");
  if (!again || again->heads != config->heads || again->vocabulary != config->vocabulary) std::abort();
  return 0;
}
