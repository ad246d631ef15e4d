// unpack_bible on any bytes: it must refuse, or give no more than its header's pieces may hold.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "models/data/data_sources.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(bible) {
  const rumor::Result<rumor::Bytes> text = rumor::models::unpack_bible({data, size}, "input");
  if (!text && text.error().text.empty()) std::abort();
  if (text && text->size() > size * (std::size_t{1} << 20)) std::abort();
  return 0;
}
