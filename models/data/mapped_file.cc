#include "models/data/mapped_file.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "models/data/plain_file.h"
#include "runtime/base/text.h"

namespace rumor::models {

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  const auto file = PlainFile::open(path);
  if (!file) return file.error();
  const auto size = static_cast<std::size_t>((*file)->size());
  void* data = size > 0 ? ::mmap(nullptr, size, PROT_READ, MAP_SHARED, (*file)->descriptor(), 0) : nullptr;
  if (data == MAP_FAILED) return Error{Errc::io, str("cannot open ", path, ": ", std::strerror(errno))};
  return std::shared_ptr<const MappedFile>(new MappedFile(static_cast<const std::uint8_t*>(data), size));
}

MappedFile::~MappedFile() {
  if (size_ > 0) ::munmap(const_cast<std::uint8_t*>(data_), size_);
}

}  // namespace rumor::models
