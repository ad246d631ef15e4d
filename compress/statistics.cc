// Sizes of updates, counted rather than estimated: zstd is run, the rest follows from the entries.
#include "compress/statistics.h"

#include <zstd.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>

#include "compress/link/link_form.h"
#include "compress/payload/head.h"
#include "compress/payload/rice.h"
#include "compress/payload/segment.h"
#include "runtime/base/bytes.h"
#include "runtime/base/check.h"

namespace rumor::compress {
namespace {

// log2 n!: a sum for small n, Stirling's series with three terms above (the next one is below 1e-15 there).
double log2_factorial(std::uint64_t n) {
  double natural = 0;
  if (n < 256) {
    for (std::uint64_t i = 2; i <= n; ++i) natural += std::log(static_cast<double>(i));
  } else {
    const double x = static_cast<double>(n);
    natural = x * std::log(x) - x + 0.5 * std::log(2 * std::numbers::pi * x) + 1 / (12 * x) -
              1 / (360 * x * x * x) + 1 / (1260 * x * x * x * x * x);
  }
  return natural / std::numbers::ln2;
}

unsigned varint_bytes(std::uint64_t value) {
  unsigned bytes = 1;
  while (value >>= 7) ++bytes;
  return bytes;
}

// Chunks of 2^chunk_bits parameters, a position inside its chunk in `position_bits` bits.
std::uint64_t chunked_bytes(std::uint32_t params, const std::vector<std::uint32_t>& index,
                            unsigned chunk_bits, unsigned position_bits) {
  std::uint64_t bytes = 0;
  auto at = index.begin();
  for (std::uint64_t chunk = 0; chunk < params; chunk += std::uint64_t{1} << chunk_bits) {
    const auto end = std::lower_bound(at, index.end(), chunk + (std::uint64_t{1} << chunk_bits));
    const std::uint64_t count = static_cast<std::uint64_t>(end - at);
    bytes += varint_bytes(count) + (count * position_bits + 7) / 8 + (count + 7) / 8;
    at = end;
  }
  return bytes;
}

Bytes leb128_gaps(const SparseUpdate& update) {
  ByteWriter out;
  std::uint32_t next = 0;
  for (std::size_t e = 0; e < update.index.size(); ++e) {
    out.varint(std::uint64_t{update.index[e] - next} * 2 + update.negative[e]);
    next = update.index[e] + 1;
  }
  return out.take();
}

// With the best parameter there is, a byte to name it and the count.
std::uint64_t rice_gaps_bytes(const std::vector<std::uint32_t>& index) {
  std::uint64_t best = ~std::uint64_t{0};
  for (unsigned parameter = 0; parameter < 31; ++parameter)
    best = std::min(best, rice_bits(index, 0, {parameter, false}));
  return 1 + varint_bytes(index.size()) + (best + 7) / 8;
}

std::uint64_t zstd19_bytes(const Bytes& bytes) {
  Bytes packed(ZSTD_compressBound(bytes.size()));
  const std::size_t size = ZSTD_compress(packed.data(), packed.size(), bytes.data(), bytes.size(), 19);
  RUMOR_CHECK(!ZSTD_isError(size));
  return size;
}

void add_layouts(std::uint32_t params, const SparseUpdate& update, LayoutBytes& layouts) {
  const Bytes gaps = leb128_gaps(update);
  layouts.u32 += 4 * update.index.size();
  layouts.u16_chunk += chunked_bytes(params, update.index, 16, 16);
  layouts.packed12_chunk += chunked_bytes(params, update.index, 12, 12);
  layouts.leb128_gaps += gaps.size();
  layouts.rice_gaps += rice_gaps_bytes(update.index);
  layouts.zstd19_gaps += zstd19_bytes(gaps);
}

std::uint64_t& count_of(ModeCounts& counts, SegmentMode mode) {
  switch (mode) {
    case SegmentMode::raw: return counts.raw;
    case SegmentMode::rice: return counts.rice;
    case SegmentMode::bitmap: return counts.bitmap;
    case SegmentMode::adapt: return counts.adapt;
    case SegmentMode::link: return counts.link;
  }
  RUMOR_CHECK(false);
}

}  // namespace

double bound_bits(std::uint64_t n, std::uint64_t k) {
  RUMOR_CHECK(k <= n);
  if (k == 0) return 0;
  return log2_factorial(n) - log2_factorial(k) - log2_factorial(n - k) + static_cast<double>(k);
}

Statistics::Statistics(const ParamLayout& layout, std::optional<int> grid_bits)
    : layout_(layout),
      grid_bits_(grid_bits),
      sender_(layout),
      receiver_(layout),
      tensors_(layout.tensors().size()) {}

void Statistics::add(const SparseUpdate& update, bool compare_layouts) {
  const Bytes payload = encode(layout_, update);
  const Result<SparseUpdate> decoded = decode(layout_, payload);
  round_trip_exact_ = round_trip_exact_ && decoded.ok() && *decoded == update;
  UpdateFigures figures;
  figures.entries = update.index.size();
  figures.payload_bytes = payload.size();
  figures.bound_bits = bound_bits(layout_.params(), figures.entries);
  if (grid_bits_ && figures.entries > 0) {
    double mass = 0;
    for (const StepRun& run : step_runs(layout_, update))
      mass += std::ldexp(static_cast<double>(run.count) * run.step, -*grid_bits_);
    figures.threshold = mass / static_cast<double>(figures.entries);
  }
  ++updates_;
  entries_ += figures.entries;
  payload_bytes_ += payload.size();
  layouts_.rumor += payload.size();
  bound_bits_ += figures.bound_bits;
  if (compare_layouts) {
    add_link_forms(update, figures);
    add_layouts(layout_.params(), update, layouts_);
  }
  add_tensors(update);
  history_.push_back(figures);
}

void Statistics::add_link_forms(const SparseUpdate& update, UpdateFigures& figures) {
  const Bytes alone = encode_link_form(layout_, update, LinkForm::adapt, nullptr);
  const Bytes linked = encode_link_form(layout_, update, LinkForm::link, &sender_);
  for (const auto& [bytes, history] : {std::pair{&alone, static_cast<LinkHistory*>(nullptr)},
                                       std::pair{&linked, &receiver_}}) {
    const Result<SparseUpdate> decoded = decode_link_form(layout_, *bytes, history);
    round_trip_exact_ = round_trip_exact_ && decoded.ok() && *decoded == update;
  }
  figures.adapt_bytes = alone.size();
  figures.link_bytes = linked.size();
  layouts_.rumor_adapt += alone.size();
  layouts_.rumor_link += linked.size();
  const std::vector<SegmentMode> modes = link_form_modes(layout_, linked);
  const Segments segments = segments_of(layout_, head_of(layout_, update).counts, update.index);
  for (std::size_t s = 0; s < modes.size(); ++s) {
    ++count_of(modes_, modes[s]);
    for (const Part& part : segments.parts_of(segments.list[s])) ++count_of(tensors_[part.tensor].modes, modes[s]);
  }
}

void Statistics::add_tensors(const SparseUpdate& update) {
  const Head head = head_of(layout_, update);
  for (std::size_t t = 0; t < tensors_.size(); ++t) {
    TensorTotals& totals = tensors_[t];
    if (head.entries > 0) totals.bits += count_bits(head.counts[t]);
    if (head.counts[t] == 0) continue;
    ++totals.updates;
    totals.entries += head.counts[t];
    totals.bound_bits += bound_bits(layout_.tensors()[t].size, head.counts[t]);
    if (!grid_bits_) continue;
    const std::int32_t step = head.tensor_step.empty() ? head.step : head.tensor_step[t];
    const double worth = std::ldexp(static_cast<double>(step), -*grid_bits_);
    totals.mass += worth * head.counts[t];
    totals.threshold += (worth - totals.threshold) / static_cast<double>(totals.updates);
  }
  std::span<const std::uint32_t> rest(update.index);
  for (const Part& part : segments_of(layout_, head.counts, update.index).parts) {
    const std::uint32_t first = layout_.tensors()[part.tensor].offset + part.begin;
    tensors_[part.tensor].bits +=
        rice_bits(rest.first(part.count), first, rice_code(part.end - part.begin, part.count));
    rest = rest.subspan(part.count);
  }
}

double Statistics::density() const {
  const double places = static_cast<double>(updates_) * layout_.params();
  return updates_ == 0 ? 0 : static_cast<double>(entries_) / places;
}

double Statistics::bits_per_entry() const {
  return entries_ == 0 ? 0 : 8.0 * static_cast<double>(payload_bytes_) / static_cast<double>(entries_);
}

double Statistics::bound_bits_per_entry() const {
  return entries_ == 0 ? 0 : bound_bits_ / static_cast<double>(entries_);
}

double Statistics::update_bytes_mean() const {
  return updates_ == 0 ? 0 : static_cast<double>(payload_bytes_) / static_cast<double>(updates_);
}

double Statistics::ratio() const {
  const double dense = 4.0 * static_cast<double>(updates_) * layout_.params();
  return payload_bytes_ == 0 ? 0 : dense / static_cast<double>(payload_bytes_);
}

}  // namespace rumor::compress
