// safetensors files: named arrays, for weights and for dumps of updates. Reader of the whole format, writer
// of floats.
//
// Format: github.com/huggingface/safetensors. Eight bytes little-endian header size, a JSON header (name ->
// dtype, shape, data_offsets; "__metadata__" -> text by text), then the data, which the tensors must cover
// without gap or overlap.
//
// The reader accepts untrusted files: the header is parsed without building a tree, and every size is checked before
// use. Names, order and metadata are returned as in the file.
//
// Thread: a file object is immutable once read. Memory: the reader holds the whole file.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

  // The bytes of an entry of this file. Valid as long as the file object.
  BytesView data(const SafetensorsEntry& entry) const;

  // The values of an F32, F16 or BF16 entry (all exact in a float); of a U32 entry. Errors: Errc::mismatch when it is
  // of another dtype.
  Result<std::vector<float>> floats(const SafetensorsEntry& entry) const;
  Result<std::vector<std::uint32_t>> words(const SafetensorsEntry& entry) const;

 private:
  Bytes bytes_;
  std::uint64_t data_at_ = 0;
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::map<std::string, std::string> metadata_;
};

// One tensor to be written, as floats, or as the bytes of any type. Values are row-major, and looked at only during the
// call.
struct SafetensorsTensor {
  std::string name;
  std::vector<std::uint32_t> shape;
  std::span<const float> values = {};
  std::string dtype = "F32";
  BytesView bytes = {};  // in place of `values`: little-endian, as the file has them
};

// The file's bytes. Requires: names unique; values.size() == product of shape, or bytes of that many.
Bytes safetensors_bytes(std::span<const SafetensorsTensor> tensors,
                        const std::map<std::string, std::string>& metadata);

// Writes beside `path` first and renames, so that a reader never sees half a file. Errors: Errc::io.
Result<void> write_safetensors(const std::string& path, std::span<const SafetensorsTensor> tensors,
                               const std::map<std::string, std::string>& metadata = {});

}  // namespace rumor::models
