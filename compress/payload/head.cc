#include "compress/payload/head.h"

#include <algorithm>
#include <bit>

#include "compress/payload/rice.h"
#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::compress {
namespace {

constexpr unsigned version = 2;
constexpr unsigned version_bits = 3, width_bits = 5;

void put_step(BitWriter& out, std::int32_t step, unsigned width) {
  const auto value = static_cast<std::uint32_t>(step);
  out.put(value ^ (std::uint32_t{1} << (width - 1)), width - 1);
}

unsigned width_of(std::int32_t step) {
  RUMOR_CHECK(step > 0);
  return static_cast<unsigned>(std::bit_width(static_cast<std::uint32_t>(step)));
}

// The step of the first tensor that has entries.
std::int32_t first_step(const Head& head) {
  const auto first = std::find_if(head.tensor_step.begin(), head.tensor_step.end(),
                                  [](std::int32_t step) { return step != 0; });
  return first == head.tensor_step.end() ? head.step : *first;
}

std::int32_t take_step(BitReader& in, unsigned width) {
  return static_cast<std::int32_t>((std::uint32_t{1} << (width - 1)) | in.take(width - 1));
}

Result<void> take_counts(BitReader& in, const ParamLayout& layout, Head& head) {
  const std::vector<TensorInfo>& tensors = layout.tensors();
  if (in.remaining() < tensors.size()) return damaged("too short for the model's tensors", in.position());
  head.counts.reserve(tensors.size());
  for (const TensorInfo& tensor : tensors) {
    const std::int64_t low_bits = in.take_unary();
    if (low_bits < 0 || low_bits > 31) return damaged("an entry count is malformed", in.position());
    const std::uint64_t low = in.take(static_cast<unsigned>(low_bits));
    const std::uint64_t count = (std::uint64_t{1} << low_bits) + low - 1;
    if (count > tensor.size) return damaged("more entries than the tensor has parameters", in.position());
    head.counts.push_back(static_cast<std::uint32_t>(count));
    head.entries += count;
  }
  if (head.entries == 0) return damaged("a step without entries", in.position());
  return {};
}

// The steps of all tensors with entries but the first, which is known.
Result<void> take_tensor_steps(BitReader& in, std::int32_t first, Head& head) {
  head.step = 0;
  head.tensor_step.assign(head.counts.size(), 0);
  bool seen = false, differ = false;
  for (std::size_t t = 0; t < head.counts.size(); ++t) {
    if (head.counts[t] == 0) continue;
    std::int32_t step = first;
    if (seen) {
      const auto width = static_cast<unsigned>(in.take(width_bits));
      if (width == 0 || in.remaining() < width) return damaged("a tensor's step is malformed", in.position());
      step = take_step(in, width);
    }
    head.tensor_step[t] = step;
    seen = true;
    differ = differ || step != first;
  }
  if (!differ) return damaged("a step for each tensor, all equal", in.position());
  return {};
}

}  // namespace

Error damaged(const char* what, std::uint64_t bit) {
  return Error{Errc::corrupt, str("update is damaged at byte ", 1 + bit / 8, ": ", what)};
}

Head head_of(const ParamLayout& layout, const SparseUpdate& update) {
  const std::vector<TensorInfo>& tensors = layout.tensors();
  const bool own_steps = !update.tensor_step.empty();
  RUMOR_CHECK(update.index.size() == update.negative.size());
  RUMOR_CHECK(update.step >= 0 && (update.step > 0) == (!update.index.empty() && !own_steps));
  RUMOR_CHECK(!own_steps || update.tensor_step.size() == tensors.size());
  Head head{update.step, update.tensor_step, {}, update.index.size()};
  head.counts.reserve(tensors.size());
  bool differ = false;
  auto at = update.index.begin();
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const auto end = std::lower_bound(at, update.index.end(), tensors[t].offset + tensors[t].size);
    head.counts.push_back(static_cast<std::uint32_t>(end - at));
    at = end;
    if (!own_steps) continue;
    RUMOR_CHECK(update.tensor_step[t] >= 0 && (update.tensor_step[t] > 0) == (head.counts[t] > 0));
    differ = differ || (head.counts[t] > 0 && update.tensor_step[t] != first_step(head));
  }
  RUMOR_CHECK(at == update.index.end());
  RUMOR_CHECK(differ == own_steps);
  return head;
}

unsigned step_width(const Head& head) {
  return head.entries == 0 ? 0 : width_of(first_step(head));
}

void put_head(BitWriter& out, const Head& head) {
  put_step(out, first_step(head), step_width(head));
  const bool own_steps = !head.tensor_step.empty();
  out.put(own_steps, 1);
  for (const std::uint32_t count : head.counts) out.put_gamma(std::uint64_t{count} + 1);
  bool seen = false;
  for (const std::int32_t step : head.tensor_step) {
    if (step == 0) continue;
    if (seen) {
      out.put(width_of(step), width_bits);
      put_step(out, step, width_of(step));
    }
    seen = true;
  }
}

Result<Head> take_head(BitReader& in, const ParamLayout& layout, unsigned width, unsigned entries_per_byte) {
  if (in.remaining() < width) return damaged("it ends inside the step", 0);
  Head head;
  head.step = take_step(in, width);
  const bool own_steps = in.take(1) != 0;
  if (const Result<void> taken = take_counts(in, layout, head); !taken) return taken.error();
  if (own_steps) {
    if (const Result<void> taken = take_tensor_steps(in, head.step, head); !taken) return taken.error();
  }
  if (8 * head.entries > entries_per_byte * in.remaining())
    return damaged("too short for its entry counts", in.position());
  return head;
}

BitWriter begin_payload(const Head& head) {
  BitWriter out(Bytes{static_cast<std::uint8_t>(version | (step_width(head) << version_bits))});
  put_head(out, head);
  return out;
}

Bytes empty_payload() {
  return {static_cast<std::uint8_t>(version)};
}

Result<PayloadStart> open_payload(const ParamLayout& layout, BytesView payload) {
  if (payload.empty()) return Error{Errc::corrupt, "update payload is empty; the shortest has one byte"};
  if ((payload[0] & ((1u << version_bits) - 1)) != version)
    return Error{Errc::corrupt, str("update payload has version ", payload[0] & 7, ", this program knows ",
                                    version, "; it is damaged or its sender is of another release")};
  const unsigned width = payload[0] >> version_bits;
  PayloadStart start{{}, BitReader(payload.subspan(1))};
  if (width == 0) {
    if (payload.size() > 1) return damaged("bytes after an empty update", 0);
    return start;
  }
  Result<Head> head = take_head(start.in, layout, width, entries_per_byte_canonical);
  if (!head) return head.error();
  start.head = std::move(*head);
  return start;
}

}  // namespace rumor::compress
