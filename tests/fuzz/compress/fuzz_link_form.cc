// Transport messages: whatever decode_link_form() accepts is an update with a payload, inside the layout.
//
// The first byte of the input chooses the layout, and whether there is a history; the rest is the message.
#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

#include "compress/link/link_form.h"
#include "runtime/base/check.h"
#include "tests/fuzz/target.h"

namespace {

using namespace rumor;
using namespace rumor::compress;

ParamLayout shaped_layout(std::initializer_list<std::initializer_list<std::uint32_t>> shapes) {
  std::vector<TensorInfo> tensors;
  for (const auto& shape : shapes)
    tensors.push_back({.name = "t" + std::to_string(tensors.size()), .shape = shape});
  return ParamLayout::create(std::move(tensors)).value();
}

}  // namespace

FUZZ_TARGET(link_form) {
  static const ParamLayout layouts[] = {shaped_layout({{16}, {4}}), shaped_layout({{64, 50}, {64}, {10, 64}}),
                                        shaped_layout({{30000}, {5}, {9}}), shaped_layout({{0x7fff'ffff}})};
  if (size == 0) return 0;
  const ParamLayout& layout = layouts[data[0] % 4];
  // A history of an all-large layout would be as large.
  const bool remembered = data[0] >= 128 && data[0] % 4 != 3;
  const auto new_history = [&] { return LinkHistory(remembered ? layout : layouts[0]); };
  LinkHistory history = new_history(), other = new_history();
  const BytesView message(data + 1, size - 1);
  const Result<SparseUpdate> update = decode_link_form(layout, message, remembered ? &history : nullptr);
  if (!update.ok()) {
    RUMOR_CHECK(!update.error().text.empty());
    return 0;
  }
  RUMOR_CHECK(update->index.size() <= 16 * message.size());
  const Result<SparseUpdate> canonical = decode(layout, encode(layout, *update));
  RUMOR_CHECK(canonical.ok() && *canonical == *update);
  const auto choice = remembered ? LinkForm::link : LinkForm::adapt;
  LinkHistory sender = new_history();
  const Bytes again = encode_link_form(layout, *update, choice, remembered ? &sender : nullptr);
  const Result<SparseUpdate> back = decode_link_form(layout, again, remembered ? &other : nullptr);
  RUMOR_CHECK(back.ok() && *back == *update);
  return 0;
}
