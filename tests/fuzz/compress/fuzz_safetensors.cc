// safetensors: whatever is accepted can be read in full, and its tensors lie apart.
#include "models/weights/safetensors.h"
#include "runtime/base/check.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(safetensors) {
  const rumor::Result<rumor::models::SafetensorsFile> file =
      rumor::models::SafetensorsFile::parse(rumor::Bytes(data, data + size));
  if (!file.ok()) {
    RUMOR_CHECK(!file.error().text.empty());
    return 0;
  }
  std::uint64_t covered = 0;
  for (const rumor::models::SafetensorsEntry& entry : file->entries()) {
    const rumor::Bytes bytes = file->all_of(entry).value();
    covered += bytes.size();
    RUMOR_CHECK(file->find(entry.name) == &entry);
    const rumor::Result<std::vector<float>> values = file->floats(entry);
    RUMOR_CHECK(values.ok() == rumor::models::SafetensorsFile::has_floats(entry));
    if (values.ok()) RUMOR_CHECK(values->size() == entry.elements());
    const rumor::Result<std::vector<std::uint32_t>> words = file->words(entry);
    RUMOR_CHECK(words.ok() == (entry.dtype == "U32"));
  }
  RUMOR_CHECK(covered < size);
  return 0;
}
