#include "runtime/base/param_layout.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "runtime/base/bytes.h"
#include "runtime/base/check.h"
#include "runtime/base/limits.h"
#include "runtime/base/sha256.h"
#include "runtime/base/text.h"

namespace rumor {

std::string describe(const TensorInfo& info) {
  std::string shape;
  for (const std::uint32_t extent : info.shape) shape += str(shape.empty() ? "" : " x ", extent);
  return str(info.name, " (", shape.empty() ? "a single value" : shape, ")");
}

Result<ParamLayout> ParamLayout::create(std::vector<TensorInfo> tensors) {
  if (tensors.empty()) return Error{Errc::limit, "a model needs at least one tensor"};
  if (tensors.size() > limits::tensors_max)
    return Error{Errc::limit,
                 str("a model of ", tensors.size(), " tensors is beyond the limit of ", limits::tensors_max)};
  ParamLayout layout;
  std::set<std::string> names;
  std::uint64_t offset = 0;
  for (TensorInfo& tensor : tensors) {
    if (tensor.name.empty() || !names.insert(tensor.name).second)
      return Error{Errc::limit, str("tensor name '", tensor.name, "' is empty or used twice")};
    std::uint64_t size = 1;
    for (std::uint32_t extent : tensor.shape) {
      size *= extent;
      if (extent == 0 || size > limits::params_max)
        return Error{Errc::limit, str("tensor ", tensor.name, " is empty or has over ", limits::params_max,
                                      " parameters")};
    }
    tensor.offset = static_cast<std::uint32_t>(offset);
    tensor.size = static_cast<std::uint32_t>(size);
    offset += size;
    if (offset > limits::params_max)
      return Error{Errc::limit, str("the model has over ", limits::params_max, " parameters")};
  }
  layout.params_ = static_cast<std::uint32_t>(offset);
  layout.tensors_ = std::move(tensors);
  return layout;
}

const TensorInfo& ParamLayout::tensor_at(std::uint32_t position) const {
  RUMOR_CHECK(position < params_);
  const auto after = std::upper_bound(tensors_.begin(), tensors_.end(), position,
                                      [](std::uint32_t at, const TensorInfo& tensor) { return at < tensor.offset; });
  return *std::prev(after);
}

void ParamLayout::encode(ByteWriter& out) const {
  out.varint(tensors_.size());
  for (const TensorInfo& tensor : tensors_) {
    out.text(tensor.name);
    out.varint(tensor.shape.size());
    for (std::uint32_t extent : tensor.shape) out.varint(extent);
  }
}

Result<ParamLayout> ParamLayout::decode(ByteReader& in) {
  const std::uint64_t count = in.varint();
  if (count > limits::tensors_max || count > in.remaining())
    return Error{Errc::corrupt, "the model layout is damaged"};
  std::vector<TensorInfo> tensors(static_cast<std::size_t>(count));
  for (TensorInfo& tensor : tensors) {
    tensor.name = in.text(limits::tensor_name_bytes_max);
    const std::uint64_t rank = in.varint();
    if (rank > limits::tensor_rank_max || in.failed())
      return Error{Errc::corrupt, "the model layout is damaged"};
    for (std::uint64_t d = 0; d < rank; ++d) {
      const std::uint64_t extent = in.varint();
      if (extent > limits::params_max) return Error{Errc::corrupt, "the model layout is damaged"};
      tensor.shape.push_back(static_cast<std::uint32_t>(extent));
    }
  }
  if (in.failed()) return Error{Errc::corrupt, "the model layout is cut off"};
  return create(std::move(tensors));
}

Hash256 ParamLayout::hash() const {
  ByteWriter out;
  encode(out);
  return sha256(out.bytes());
}

}  // namespace rumor
