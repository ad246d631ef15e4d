// parse_adapter_json on any bytes: it must refuse, or give a description that can be written and read back.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "models/weights/adapter_json.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(adapter_json) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read = rumor::models::parse_adapter_json(text, "input");
  if (!read && read.error().text.empty()) std::abort();
  if (!read) return 0;
  const auto again = rumor::models::parse_adapter_json(rumor::models::adapter_json(*read), "again");
  if (!again || again->adapter.targets != read->adapter.targets || again->adapter.alpha != read->adapter.alpha)
    std::abort();
  return 0;
}
