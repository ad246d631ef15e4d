#include "models/families/tensor_finder.h"

#include <algorithm>
#include <utility>

#include "runtime/base/text.h"

namespace rumor::models {
namespace {

std::string text_of(const std::vector<std::uint32_t>& shape) {
  std::string out;
  for (const std::uint32_t extent : shape) out += str(out.empty() ? "" : " x ", extent);
  return out;
}

}  // namespace

const TensorInfo* TensorFinder::find(const std::string& name) const {
  const std::string prefixed = str(prefix_, name);
  const std::vector<TensorInfo>& all = layout_.tensors();
  const auto at = std::find_if(all.begin(), all.end(), [&](const TensorInfo& tensor) {
    return tensor.name == name || tensor.name == prefixed;
  });
  return at == all.end() ? nullptr : &*at;
}

std::uint32_t TensorFinder::offset(const std::string& name, const std::vector<std::uint32_t>& shape) {
  const TensorInfo* tensor = find(name);
  if (tensor == nullptr) {
    fail(str("it has no tensor ", prefix_, name));
    return 0;
  }
  if (tensor->shape != shape)
    fail(str("tensor ", tensor->name, " is ", text_of(tensor->shape), ", not ", text_of(shape)));
  return tensor->offset;
}

void TensorFinder::fail(std::string why) {
  if (wrong_.empty()) wrong_ = std::move(why);
}

}  // namespace rumor::models
