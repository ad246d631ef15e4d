// IDX: the array files of MNIST and its relatives, plain or gzip.
//
// Format (Yann LeCun's MNIST page), numbers big-endian:
//   offset 0  2 bytes  zero
//          2  1 byte   type of the elements; 0x08, unsigned byte, is the only one read here
//          3  1 byte   number of dimensions, 1 to 4 here
//          4  4 bytes  each dimension, outermost first
//          then the elements, row-major, to the end of the file exactly
//
// Files are not trusted: sizes are compared with the bytes that are there before anything is made of them.
// Thread: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/types.h"

namespace rumor::models {

inline constexpr std::size_t idx_bytes_max = std::size_t{1} << 30;  // decompressed
inline constexpr std::uint32_t idx_dimensions_max = 4;

struct IdxArray {
  std::vector<std::uint32_t> shape;  // every extent >= 1
  BytesView elements;                // into the bytes that were parsed: product of shape
};

// `file` is for the error text. Errors: Errc::corrupt, naming file and offset.
Result<IdxArray> parse_idx(BytesView bytes, std::string_view file);

// The whole file, decompressed if it is gzip.
// Errors: Errc::io (cannot open or read), Errc::corrupt (damaged gzip), Errc::limit (over idx_bytes_max).
Result<Bytes> read_data_file(const std::string& path);

}  // namespace rumor::models
