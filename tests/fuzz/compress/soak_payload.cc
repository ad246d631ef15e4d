// Soak: damages valid payloads, messages and segment bodies of every mode and sees what the decoders make of
// them. What must hold: no crash; no write outside (guards, and the address sanitizer where built with it);
// a payload that is accepted is the one encoding of what it says; a message that is accepted says an update
// that has a payload; and of what is refused nothing reaches the weights.
//
// usage: soak_payload INPUTS [SEED]     for example soak_payload 1e8
// The same arguments give the same inputs. Prints progress, and how many were accepted, by kind.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "compress/link/segment_modes.h"
#include "compress/payload/apply.h"
#include "compress/payload/crc32c.h"
#include "runtime/base/check.h"
#include "tests/unit/compress/generated.h"

using namespace rumor;
using namespace rumor::compress;

namespace {

enum Kind { canonical, message, body, kinds };
constexpr const char* kind_names[kinds] = {"payloads", "messages", "bodies"};
constexpr SegmentMode modes[] = {SegmentMode::raw, SegmentMode::rice, SegmentMode::bitmap, SegmentMode::adapt,
                                 SegmentMode::link};
constexpr std::size_t guard = 8;

// One model, what its links remember, and the weights that updates go to.
struct Model {
  explicit Model(ParamLayout of) : layout(std::move(of)), history(layout), weights(layout.params(), 0) {}
  ParamLayout layout;
  LinkHistory history;
  std::vector<std::int32_t> weights;
};

struct Sample {
  Model* model = nullptr;
  Kind kind = canonical;
  Bytes bytes;
  std::size_t head_bytes = 0;  // before the checksum of the table, where there is one
  SegmentMode mode = SegmentMode::rice;
  std::vector<Part> parts;  // of a body
};

// Where the checksum of all before it stands; 0 where there is none.
std::size_t checked_head(const Bytes& bytes) {
  for (std::size_t end = 1; end + 4 < std::min<std::size_t>(bytes.size(), 200); ++end) {
    const std::uint32_t checksum = crc32c(BytesView(bytes).first(end));
    bool equal = true;
    for (std::size_t b = 0; b < 4; ++b)
      equal = equal && bytes[end + b] == static_cast<std::uint8_t>(checksum >> (8 * b));
    if (equal) return end;
  }
  return 0;
}

std::vector<std::uint32_t> counts_of(const ParamLayout& layout, const SparseUpdate& update) {
  std::vector<std::uint32_t> counts;
  for (const TensorInfo& tensor : layout.tensors())
    counts.push_back(static_cast<std::uint32_t>(
        std::lower_bound(update.index.begin(), update.index.end(), tensor.offset + tensor.size) -
        std::lower_bound(update.index.begin(), update.index.end(), tensor.offset)));
  return counts;
}

void add_samples(Prng& prng, Model& model, std::uint32_t entries, std::vector<Sample>& samples) {
  const ParamLayout& layout = model.layout;
  SparseUpdate update = random_update(prng, layout.params(), std::min(entries, layout.params()), 1234);
  if (prng.chance(1, 3)) give_own_steps(prng, layout, update);
  samples.push_back({&model, canonical, encode(layout, update), 0, SegmentMode::rice, {}});
  if (update.index.empty()) return;
  const Segments segments = segments_of(layout, counts_of(layout, update), update.index);
  for (const SegmentMode mode : modes) {
    if (mode == SegmentMode::bitmap && layout.params() > 1'000'000) continue;
    samples.push_back(
        {&model, message, encode_link_form_in(layout, update, mode, &model.history), 0, mode, {}});
    const Segment& segment = segments.list[prng.below(segments.list.size())];
    const std::span<const Part> parts = segments.parts_of(segment);
    const SegmentEntries of{parts, std::span(update.index).subspan(segment.first_entry, segment.entries),
                            std::span(update.negative).subspan(segment.first_entry, segment.entries)};
    samples.push_back({&model,
                       body,
                       body_in(layout, of, mode, &model.history, rice_kernels()),
                       0,
                       mode,
                       {parts.begin(), parts.end()}});
  }
}

void damage(Prng& prng, const Sample& sample, const Sample& other, Bytes& bytes) {
  const std::uint64_t changes = 1 + prng.below(4);
  for (std::uint64_t i = 0; i < changes && !bytes.empty(); ++i) {
    const std::size_t at =
        prng.below(prng.chance(1, 2) ? std::min<std::size_t>(bytes.size(), 24) : bytes.size());
    switch (prng.below(8)) {
      case 0:
        bytes[at] = static_cast<std::uint8_t>(prng.next());
        break;
      case 1:
        bytes[at] = prng.chance(1, 2) ? 0 : 0xff;
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.insert(bytes.end(), 1 + prng.below(9), static_cast<std::uint8_t>(prng.below(2) * 0xff));
        break;
      case 4:
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                    std::min<std::size_t>(8, bytes.size() - at), 0);
        break;
      case 5:
        if (other.bytes.size() > at) std::copy_n(other.bytes.begin(), at, bytes.begin());
        break;
      default:
        bytes[at] ^= static_cast<std::uint8_t>(1u << prng.below(8));
        break;
    }
  }
  const std::size_t head = sample.head_bytes;
  if (head == 0 || bytes.size() < head + 4 || !prng.chance(3, 4)) return;
  const std::uint32_t checksum = crc32c(BytesView(bytes).first(head));
  for (std::size_t b = 0; b < 4; ++b) bytes[head + b] = static_cast<std::uint8_t>(checksum >> (8 * b));
}

// There and back: the weights must be as before, and were never left half changed.
void apply_and_take_back(Model& model, SparseUpdate& update) {
  const SparseUpdate* const pointer = &update;
  if (model.layout.params() > 200'000) return;
  apply(model.layout, {&pointer, 1}, model.weights);
  for (std::uint8_t& negative : update.negative) negative ^= 1;
  apply(model.layout, {&pointer, 1}, model.weights);
  for (std::uint8_t& negative : update.negative) negative ^= 1;
}

bool try_update(Prng& prng, Model& model, Kind kind, const Bytes& bytes) {
  const CodecOptions options{nullptr, prng.chance(1, 2) ? &rice_kernels_portable : nullptr};
  Result<SparseUpdate> update = Error{};
  if (kind == canonical)
    update = decode(model.layout, bytes, options);
  else
    update = decode_link_form(model.layout, bytes, prng.chance(1, 2) ? &model.history : nullptr, options);
  if (!update.ok()) {
    RUMOR_CHECK(update.error().code == Errc::corrupt && !update.error().text.empty());
    return false;
  }
  RUMOR_CHECK(update->index.size() <= 16 * bytes.size());
  const Bytes again = encode(model.layout, *update);
  if (kind == canonical)
    RUMOR_CHECK(again == bytes);
  else
    RUMOR_CHECK(decode(model.layout, again).value() == *update);
  apply_and_take_back(model, *update);
  return true;
}

bool try_body(const Sample& sample, const Bytes& bytes) {
  std::size_t entries = 0;
  for (const Part& part : sample.parts) entries += part.count;
  std::vector<std::uint32_t> index(entries + guard, 0xdead'beef);
  std::vector<std::uint8_t> negative(entries + guard, 0x5a);
  const SegmentPlace place{.bytes = static_cast<std::uint32_t>(bytes.size()), .mode = sample.mode};
  const ParamLayout& layout = sample.model->layout;
  const bool accepted = decode_body(layout, sample.parts, bytes, place, 0, &sample.model->history,
                                    index.data(), negative.data(), rice_kernels());
  for (std::size_t e = entries; e < entries + guard; ++e)
    RUMOR_CHECK(index[e] == 0xdead'beef && negative[e] == 0x5a);
  if (!accepted) return false;
  const SegmentEntries read{sample.parts, std::span(index).first(entries),
                            std::span(negative).first(entries)};
  const Bytes again = body_in(layout, read, sample.mode, &sample.model->history, rice_kernels());
  RUMOR_CHECK(again == bytes);  // each mode has one body for given entries
  return true;
}

std::vector<Sample> make_samples(Prng& prng, std::vector<std::unique_ptr<Model>>& models) {
  const auto add = [&](ParamLayout layout) { models.push_back(std::make_unique<Model>(std::move(layout))); };
  add(layout_of({16, 4}));
  add(layout_of({1, 3, 200, 7}));
  add(mlp_layout());
  add(ParamLayout::create({{"a", {64, 50}}, {"b", {64}}, {"c", {10, 64}}}).value());
  add(layout_of({30'000, 5, 9}));
  std::vector<Sample> samples;
  for (const auto& model : models) {
    const SparseUpdate seen =
        random_update(prng, model->layout.params(), std::min(100u, model->layout.params()), 1);
    model->history.remember(seen.index, seen.negative);
    for (const std::uint32_t entries : {0u, 1u, 3u, 20u, 100u, 170u})
      for (int i = 0; i < 4; ++i) add_samples(prng, *model, entries, samples);
  }
  for (const std::uint32_t entries : {17'000u, 29'000u}) add_samples(prng, *models.back(), entries, samples);
  for (Sample& sample : samples)
    if (sample.bytes.size() > 1000) sample.head_bytes = checked_head(sample.bytes);
  return samples;
}

}  // namespace

int main(int argc, char** argv) {
  const auto inputs = static_cast<std::uint64_t>(argc > 1 ? std::atof(argv[1]) : 0);
  if (inputs == 0) {
    std::fprintf(stderr, "usage: %s INPUTS [SEED]\n", argv[0]);
    return 2;
  }
  Prng prng(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
  std::vector<std::unique_ptr<Model>> models;
  const std::vector<Sample> samples = make_samples(prng, models);
  const auto start = std::chrono::steady_clock::now();
  std::uint64_t tried[kinds] = {}, accepted[kinds] = {};
  for (std::uint64_t i = 1; i <= inputs; ++i) {
    const Sample* sample = &samples[prng.below(samples.size())];
    if (sample->bytes.size() > 1000 && !prng.chance(1, 50))
      sample = &samples[prng.below(100)];  // large ones are slow
    Bytes bytes = sample->bytes;
    damage(prng, *sample, samples[prng.below(samples.size())], bytes);
    const bool ok = sample->kind == body ? try_body(*sample, bytes)
                                         : try_update(prng, *sample->model, sample->kind, bytes);
    ++tried[sample->kind];
    accepted[sample->kind] += ok ? 1 : 0;
    if (i % std::max<std::uint64_t>(1, inputs / 20) != 0) continue;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::fprintf(stderr, "%llu inputs, %.0f a second\n", static_cast<unsigned long long>(i),
                 static_cast<double>(i) / seconds);
  }
  for (const auto& model : models)
    RUMOR_CHECK(
        std::all_of(model->weights.begin(), model->weights.end(), [](std::int32_t w) { return w == 0; }));
  for (int kind = 0; kind < kinds; ++kind)
    std::printf("%s: %llu tried, %llu accepted\n", kind_names[kind],
                static_cast<unsigned long long>(tried[kind]),
                static_cast<unsigned long long>(accepted[kind]));
  return 0;
}
