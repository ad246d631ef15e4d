// PlainFile: a file that is read piece by piece, for data that other programs may replace meanwhile.
//
// Unlike a mapped file (models/data/mapped_file.h), one that becomes shorter is an error and does not kill the process.
//
// Thread: immutable once opened; read() may be called by several at once. Memory: none. It holds the file open.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/base/result.h"

namespace rumor::models {

class PlainFile {
 public:
  // Errors: Errc::not_found (no such file), Errc::io (not a plain file, or the system's reason).
  static Result<std::shared_ptr<const PlainFile>> open(const std::string& path);
  ~PlainFile();
  PlainFile(const PlainFile&) = delete;
  PlainFile& operator=(const PlainFile&) = delete;

  // When it was opened.
  std::uint64_t size() const { return size_; }
  // For mapping it; this object closes it.
  int descriptor() const { return file_; }
  // Fills `out` with the bytes from `at` on. Errors: Errc::corrupt for a file that ends before, Errc::io with the
  // system's reason. They do not name the file.
  Result<void> read(std::uint64_t at, std::span<std::uint8_t> out) const;

 private:
  PlainFile(int file, std::uint64_t size) : file_(file), size_(size) {}
  int file_;
  std::uint64_t size_;
};

}  // namespace rumor::models
