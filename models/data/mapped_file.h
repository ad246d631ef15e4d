// A file as bytes in memory, which the system reads on access: for data that may be larger than memory.
//
// Trap: truncating a file while it is mapped kills the process (SIGBUS). Replace such a file by renaming, as package
// managers do, not in place.
//
// Thread: immutable once opened.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/result.h"
#include "runtime/base/types.h"

namespace rumor::models {

class MappedFile {
 public:
  // Errors: Errc::not_found (no such file), Errc::io (not a plain file, or the system's reason).
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Valid as long as this object. Empty for an empty file.
  BytesView bytes() const { return {data_, size_}; }

 private:
  MappedFile(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  const std::uint8_t* data_;
  std::size_t size_;
};

}  // namespace rumor::models
