// ParamLayout: one flat parameter vector, named and shaped.
//
// Tensors follow one another, row-major, in the order given, with PyTorch's names and shapes. `compress` sees rows and
// columns (rows = first dimension, columns = product of the rest), `models` the full shapes.
//
// Invariants: 1 <= params() <= limits::params_max; names unique and not empty.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/base/result.h"
#include "runtime/base/types.h"

namespace rumor {

struct TensorInfo {
  std::string name;
  std::vector<std::uint32_t> shape;  // [out, in] for a linear layer's weight
  std::uint32_t offset = 0;          // first parameter in the flat vector
  std::uint32_t size = 0;            // product of shape

  std::uint32_t rows() const { return shape.empty() ? 1 : shape.front(); }
  std::uint32_t cols() const { return size / rows(); }
};

// For people: "head.weight (10 x 64)".
std::string describe(const TensorInfo& info);

class ParamLayout {
 public:
  // Computes offsets and sizes; those in `tensors` are ignored. Errors: Errc::limit.
  static Result<ParamLayout> create(std::vector<TensorInfo> tensors);

  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  std::uint32_t params() const { return params_; }
  // The tensor that holds this position of the flat vector. Requires: position < params().
  const TensorInfo& tensor_at(std::uint32_t position) const;

  // Canonical bytes: varint count, then per tensor its name (varint length, text), varint rank, varint
  // extents.
  void encode(ByteWriter& out) const;
  // Errors: Errc::corrupt, Errc::limit.
  static Result<ParamLayout> decode(ByteReader& in);
  // SHA-256 of encode(): part of the run id.
  Hash256 hash() const;

 private:
  std::vector<TensorInfo> tensors_;
  std::uint32_t params_ = 0;
};

}  // namespace rumor
