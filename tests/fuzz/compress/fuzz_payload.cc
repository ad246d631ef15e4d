// Update payloads: whatever decode() accepts must be the one encoding of what it returns, inside the layout.
//
// The first byte of the input chooses the layout, the rest is the payload.
#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

#include "compress/payload/update.h"
#include "runtime/base/check.h"
#include "tests/fuzz/target.h"

namespace {

rumor::ParamLayout flat_layout(std::initializer_list<std::uint32_t> sizes) {
  std::vector<rumor::TensorInfo> tensors;
  for (const std::uint32_t size : sizes)
    tensors.push_back({.name = "t" + std::to_string(tensors.size()), .shape = {size}});
  return rumor::ParamLayout::create(std::move(tensors)).value();
}

}  // namespace

FUZZ_TARGET(payload) {
  static const rumor::ParamLayout layouts[] = {flat_layout({16, 4}), flat_layout({1}),
                                               flat_layout({100352, 128, 16384, 128, 1280, 10}),
                                               flat_layout({0x7fff'ffff}), flat_layout({30000, 5, 9})};
  if (size == 0) return 0;
  const rumor::ParamLayout& layout = layouts[data[0] % 5];
  const rumor::BytesView payload(data + 1, size - 1);
  const rumor::Result<rumor::compress::SparseUpdate> update = rumor::compress::decode(layout, payload);
  if (!update.ok()) {
    RUMOR_CHECK(!update.error().text.empty());
    return 0;
  }
  RUMOR_CHECK(update->index.size() <= 4 * payload.size());
  const rumor::Bytes again = rumor::compress::encode(layout, *update);
  RUMOR_CHECK(again.size() == payload.size() && std::equal(again.begin(), again.end(), payload.begin()));
  return 0;
}
