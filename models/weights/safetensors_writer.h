// Writes safetensors files (models/weights/safetensors.h has the format).
//
// Values are converted block by block while they are written, so a file takes no second copy of the weights in memory.
//
// Thread: plain functions.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/types.h"

namespace rumor::models {

// One tensor to be written, as floats, or as the bytes of any type. Values are row-major, and looked at only during the
// call.
struct SafetensorsTensor {
  std::string name;
  std::vector<std::uint32_t> shape;
  std::span<const float> values = {};
  std::string dtype = "F32";  // of values: F32, BF16, F16 or F64, to which they are rounded (float_formats.h)
  BytesView bytes = {};       // in place of `values`: little-endian, as the file has them

  // The size of its data in the file.
  std::uint64_t file_bytes() const;
};

using SafetensorsMetadata = std::map<std::string, std::string>;

// The file's bytes. Requires: names unique; values.size() == product of shape, or bytes of that many; every value
// within the range of its dtype.
Bytes safetensors_bytes(std::span<const SafetensorsTensor> tensors, const SafetensorsMetadata& metadata);

// Writes to `path` as it is: a crash leaves half a file. Errors: Errc::io; Errc::limit names the tensor with a finite
// value beyond the range of its dtype. `path` is removed after an error.
Result<void> write_safetensors_part(const std::string& path, std::span<const SafetensorsTensor> tensors,
                                    const SafetensorsMetadata& metadata);

// Writes beside `path` first and renames, so that a reader never sees half a file. Errors: as above.
Result<void> write_safetensors(const std::string& path, std::span<const SafetensorsTensor> tensors,
                               const SafetensorsMetadata& metadata = {});

}  // namespace rumor::models
