// safetensors files: named arrays, for weights and for dumps of updates. This is the reader; the writer is in
// safetensors_writer.h.
//
// Format: github.com/huggingface/safetensors. Eight bytes little-endian header size, a JSON header (name ->
// dtype, shape, data_offsets; "__metadata__" -> text by text), then the data, which the tensors must cover
// without gap or overlap.
//
// The reader accepts untrusted files: the header is parsed without building a tree, and every size is checked before
// use. Names, order and metadata are returned as in the file.
//
// Thread: a file object is immutable once read. Memory: the header. Values are read from the file when they are asked
// for, so one that becomes shorter meanwhile is an error.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/data/plain_file.h"
#include "runtime/base/result.h"
#include "runtime/base/types.h"

namespace rumor::models {

struct SafetensorsEntry {
  std::string name;
  std::string dtype;                 // as written: "F32", "U32", "U8", "BF16" ...
  std::vector<std::uint64_t> shape;  // empty for a scalar
  std::uint64_t begin = 0;           // of its data, in bytes after the header
  std::uint64_t end = 0;

  std::uint64_t elements() const;  // product of shape; cannot overflow in an entry that was read
};

class SafetensorsFile {
 public:
  static constexpr std::uint64_t header_bytes_max = 100'000'000;
  static constexpr std::size_t dimensions_max = 16;

  // Errors: Errc::not_found or Errc::io for the file, Errc::corrupt with the cause and its place in the file.
  static Result<SafetensorsFile> read(const std::string& path);
  static Result<SafetensorsFile> parse(Bytes bytes);

  // In the order of the header.
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // Null when there is none. Valid as long as the file object.
  const SafetensorsEntry* find(std::string_view name) const;

  // Bytes of an entry of this file, from byte `first` of its data on. Requires: they are within the entry. Errors:
  // those of PlainFile::read, naming the tensor.
  Result<void> read(const SafetensorsEntry& entry, std::uint64_t first, std::span<std::uint8_t> out) const;
  // The same of a whole entry.
  Result<Bytes> all_of(const SafetensorsEntry& entry) const;

  // Whether floats() can read it.
  static bool has_floats(const SafetensorsEntry& entry);
  // The values of an F32, BF16, F16 or F64 entry (models/weights/float_formats.h); of a U32 entry. Errors:
  // Errc::mismatch when it is of another dtype; those of read().
  Result<std::vector<float>> floats(const SafetensorsEntry& entry) const;
  Result<std::vector<std::uint32_t>> words(const SafetensorsEntry& entry) const;

 private:
  // front: the size of the header and the header, or the whole file if it is shorter than it says. Errors:
  // Errc::corrupt.
  static Result<SafetensorsFile> parse_header(BytesView front, std::uint64_t file_bytes);

  std::shared_ptr<const PlainFile> file_;  // of a file that was read
  std::shared_ptr<const Bytes> bytes_;     // of one that was parsed
  std::uint64_t data_at_ = 0;
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace rumor::models
