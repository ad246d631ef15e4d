// Cost of one part of compression or of models on a GPU, as one JSON object: tests/gpu/visit runs part after part, each
// in a process of its own, and keeps the results.
//
// usage: bench_gpu [--emulated] passes|codec|arrival PARAMS...    of so many parameters; codec, arrival: of the first
//        bench_gpu [--emulated] kernels|gpt2|llama|muon|mlp|several_gpus
//        bench_gpu [--emulated] --losses FILE    the first losses of GPT-2, for tests/gpu/card/torch_gpt.py
//
// Every time is that of many calls, one after another, and one wait at the end; the shortest of some rounds. The
// throughput of a pass over memory is given as a share of that of a plain copy on the same device.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/compress/codec.h"
#include "gpu/compress/compressor.h"
#include "gpu/compress/device_replica.h"
#include "gpu/device/plugin.h"
#include "tests/gpu/card/bench_model.h"
#include "tests/gpu/card/bench_support.h"
#include "tests/gpu/emulation/emulated_table.h"

namespace rumor::gpu {
namespace {

bool emulated = false;  // then nothing is measured, everything is run

constexpr double density = 0.001;

// Bytes a second that a copy reads and writes.
double copy_speed(const Gpu& gpu, std::size_t bytes) {
  const DeviceArray<std::uint8_t> from = must(DeviceArray<std::uint8_t>::create(gpu, bytes, "a copy"));
  const DeviceArray<std::uint8_t> to = must(DeviceArray<std::uint8_t>::create(gpu, bytes, "a copy"));
  gpu.table().fill(gpu.device(), from.data(), 1, bytes);
  const double seconds =
      seconds_of(gpu, emulated, 10, [&] { gpu.table().copy_within(gpu.device(), to.data(), from.data(), bytes); });
  return 2 * static_cast<double>(bytes) / seconds;
}

ParamLayout one_tensor(std::uint32_t params) {
  return must(ParamLayout::create({{.name = "all", .shape = {params}}}));
}

// One pass alone, a pass and the selection behind it, and a whole update of the compressor.
std::string pass(const Gpu& gpu, std::uint32_t params, double copy_bytes_per_second) {
  const DeviceArray<float> change = noise(gpu, params, 1e-4f);
  DeviceCompressor compressor = must(DeviceCompressor::create(gpu, one_tensor(params), {.density = density}));
  DeviceUpdate update;
  for (int warm = 0; warm < (emulated ? 2 : 8); ++warm) must(compressor.absorb(change, update));
  const std::uint64_t looks = compressor.second_looks();
  const double absorb = seconds_of(gpu, emulated, 10, [&] { must(compressor.absorb(change, update)); });
  const std::uint64_t second_looks = compressor.second_looks() - looks;

  const std::uint32_t tiles = params / tile_params + 1, room = 8 * update.count + 16384;
  const DeviceArray<float> residual = noise(gpu, params, 1e-4f);
  const auto index = must(DeviceArray<std::uint32_t>::create(gpu, room, "candidates"));
  const auto value = must(DeviceArray<float>::create(gpu, room, "candidates"));
  const auto tile = must(DeviceArray<Tile>::create(gpu, tiles, "tiles"));
  const auto selection = must(DeviceArray<Selection>::create(gpu, 1, "a selection"));
  const DeviceArray<float> nothing = noise(gpu, params, 0.0f);
  // The largest ten in ten thousand of the noise, found among its first block.
  std::vector<float> block(std::min<std::uint32_t>(params, 1 << 22));
  must(residual.read(block.data(), block.size()));
  for (float& one : block) one = std::abs(one);
  const auto at =
      block.begin() + static_cast<std::ptrdiff_t>(static_cast<double>(block.size() - 1) * (1 - 1.2 * density));
  std::nth_element(block.begin(), at, block.end());
  std::uint32_t cutoff = 0;
  std::memcpy(&cutoff, &*at, sizeof cutoff);
  const ScanArgs args{residual.data(),      nothing.data(),   nullptr,       params,
                      std::max(cutoff, 1u), index.data(),     value.data(),  room,
                      tile.data(),          selection.data(), Change::floats};
  const double scan = seconds_of(gpu, emulated, 20, [&] { gpu.table().scan(gpu.device(), &args); });
  const auto bins = must(DeviceArray<std::uint32_t>::create(gpu, radix_bins, "selection"));
  const auto counts = must(DeviceArray<std::uint32_t>::create(gpu, 2 * std::size_t{tiles}, "selection"));
  const Source source{value.data(), index.data(), tile.data(), params, room, 0};
  const SelectScratch scratch{bins.data(), counts.data()};
  const double select = seconds_of(gpu, emulated, 20, [&] {
    gpu.table().scan(gpu.device(), &args);
    gpu.table().select(gpu.device(), &source, update.count, 1, scratch, selection.data());
    gpu.table().emit(gpu.device(), &source, scratch, selection.data(), update.index.data(), update.negative.data());
  });
  const double ideal = 12.0 * params / copy_bytes_per_second;
  char text[512];
  std::snprintf(
      text, sizeof text,
      "{\"params\": %u, \"entries\": %u, \"copy_pass_s\": %.9g, \"scan_s\": %.9g, \"scan_share_of_copy\": %.4f, "
      "\"scan_select_emit_s\": %.9g, \"scan_select_emit_passes\": %.4f, \"absorb_s\": %.9g, "
      "\"absorb_second_looks\": %llu}",
      params, update.count, ideal, scan, ideal / scan, select, select / ideal, absorb,
      static_cast<unsigned long long>(second_looks));
  return text;
}

// Tensors in the proportions of GPT-2: a large one, then a dozen of small and middling ones in turn.
ParamLayout gpt_layout(std::uint32_t params) {
  std::vector<TensorInfo> tensors;
  std::uint32_t left = params;
  const auto add = [&](double share) {
    const auto size = std::min(left, std::max(1u, static_cast<std::uint32_t>(params * share)));
    if (size == 0) return;
    tensors.push_back({.name = "t" + std::to_string(tensors.size()), .shape = {size}});
    left -= size;
  };
  add(0.31);
  for (int block = 0; block < 12; ++block)
    for (const double share : {6e-6, 6e-6, 0.0142, 2e-5, 0.0047, 6e-6, 6e-6, 6e-6, 0.019, 2.5e-5, 0.019, 6e-6})
      add(share);
  if (left > 0) add(1);
  return must(ParamLayout::create(std::move(tensors)));
}

std::string codec(const Gpu& gpu, std::uint32_t params) {
  const ParamLayout layout = gpt_layout(params);
  const DeviceArray<float> change = noise(gpu, params, 1e-4f);
  DeviceCompressor compressor = must(DeviceCompressor::create(gpu, layout, {.density = density}));
  DeviceUpdate update, decoded;
  must(compressor.absorb(change, update));
  DeviceCodec coder(gpu, layout);
  const Bytes payload = must(coder.encode(update));
  const double encode = seconds_of(gpu, emulated, 20, [&] { must(coder.encode(update)); });
  const double decode = seconds_of(gpu, emulated, 20, [&] { must(coder.decode(payload, decoded)); });
  const auto weights = must(DeviceArray<std::int32_t>::create(gpu, params, "weights"));
  const auto view = must(DeviceArray<float>::create(gpu, params, "a view"));
  const auto lanes = must(DeviceArray<std::uint32_t>::create(gpu, 2, "a fingerprint"));
  gpu.table().fill(gpu.device(), weights.data(), 0, std::size_t{params} * 4);
  gpu.table().fill(gpu.device(), lanes.data(), 0, 8);
  const Entries entries = decoded.entries();
  const double apply = seconds_of(
      gpu, emulated, 50, [&] { gpu.table().apply(gpu.device(), &entries, weights.data(), view.data(), 0x1p-24f); });
  const double fingerprint =
      seconds_of(gpu, emulated, 50, [&] { gpu.table().fingerprint_entries(gpu.device(), &entries, 1, lanes.data()); });
  char text[512];
  std::snprintf(text, sizeof text,
                "{\"params\": %u, \"tensors\": %zu, \"entries\": %u, \"payload_bytes\": %zu, \"encode_s\": %.9g, "
                "\"decode_s\": %.9g, \"apply_s\": %.9g, \"fingerprint_s\": %.9g}",
                params, layout.tensors().size(), update.count, payload.size(), encode, decode, apply, fingerprint);
  return text;
}

// Payloads that are decoded as they come, each by itself, on an urgent stream (runtime/training/device_arrivals.h):
// how long all of it takes while the first stream makes passes over all weights, and how long it takes to hear that it
// is done.
std::string decoded_beside(const Gpu& gpu, const ParamLayout& layout, std::span<const BytesView> payloads) {
  const std::unique_ptr<Gpu> stream = must(gpu.open_urgent());
  DeviceCodec coder(*stream, layout);
  std::vector<DeviceCodec::Begun> begun(payloads.size());
  std::vector<DeviceUpdate> entries(payloads.size());
  const auto begin = [&] {
    for (std::size_t i = 0; i < payloads.size(); ++i) must(coder.begin({&payloads[i], 1}, entries[i], begun[i]));
  };
  const auto finish = [&] {
    for (std::size_t i = 0; i < payloads.size(); ++i) must(coder.finish(begun[i], entries[i]));
  };
  const DeviceArray<std::int32_t> weights =
      must(DeviceArray<std::int32_t>::create(gpu, layout.params(), "a benchmark"));
  const DeviceArray<float> shown = must(DeviceArray<float>::create(gpu, layout.params(), "a benchmark"));
  const auto passes = [&] {
    for (int pass = 0; pass < (emulated ? 1 : 100); ++pass)
      gpu.table().show(gpu.device(), weights.data(), layout.params(), shown.data(), 1);
  };
  const double busy = seconds_of(gpu, emulated, 1, passes);
  passes();
  const double beside = seconds_of(*stream, emulated, 1, [&] {
    begin();
    finish();
  });
  must(gpu.wait());
  const double told = seconds_of(*stream, emulated, 10, finish);
  return number("busy_s", busy) + ", " + number("beside_s", beside) + ", " + number("told_s", told);
}

// Times the work on arrivals between two steps (runtime/training/device_view.h): eight updates cross the bus as
// payloads, are decoded, and are added to integers and floats. Also times sending all weights, as when the changes are
// unknown, and the fingerprint that proves them.
std::string arrival(const Gpu& gpu, std::uint32_t params) {
  const ParamLayout layout = gpt_layout(params);
  const DeviceArray<float> change = noise(gpu, params, 1e-4f);
  DeviceCompressor compressor = must(DeviceCompressor::create(gpu, layout, {.density = density}));
  DeviceCodec coder(gpu, layout);
  DeviceUpdate update;
  std::vector<Bytes> payloads;
  std::vector<std::vector<compress::StepRun>> runs;
  std::uint64_t entries = 0, bytes = 0;
  for (int peer = 0; peer < 8; ++peer) {
    must(compressor.absorb(change, update));
    payloads.push_back(must(coder.encode(update)));
    runs.push_back(compress::step_runs(layout, must(compress::decode(layout, payloads.back()))));
    entries += update.count;
    bytes += payloads.back().size();
  }
  DeviceReplica replica = must(DeviceReplica::create(gpu, params, 24));
  const std::vector<std::int32_t> weights(params, 1);
  const double all = seconds_of(gpu, emulated, 1, [&] { replica.write(weights); });
  const std::vector<BytesView> views(payloads.begin(), payloads.end());
  const double decoded = seconds_of(gpu, emulated, 10, [&] { must(coder.decode_all(views, update)); });
  const double arrived = seconds_of(gpu, emulated, 10, [&] {
    const std::vector<std::uint32_t> counts = must(coder.decode_all(views, update));
    std::uint32_t first = 0;
    for (std::size_t i = 0; i < counts.size(); first += counts[i++])
      must(replica.add(update.placed(first, counts[i]), runs[i], 1));
  });
  const auto last = static_cast<std::uint32_t>(runs.back().back().first + runs.back().back().count);
  const double share = seconds_of(
      gpu, emulated, 50, [&] { must(replica.add(update.placed(update.count - last, last), runs.back(), 3)); });
  const double proven = seconds_of(gpu, emulated, 10, [&] { must(replica.fingerprint(1)); });
  char text[384];
  std::snprintf(text, sizeof text,
                "{\"params\": %u, \"updates\": %zu, \"entries\": %llu, \"bytes\": %llu, \"arrived_s\": %.9g, "
                "\"decoded_s\": %.9g, \"share_s\": %.9g, \"all_weights_s\": %.9g, \"fingerprint_s\": %.9g, ",
                params, payloads.size(), static_cast<unsigned long long>(entries),
                static_cast<unsigned long long>(bytes), arrived, decoded, share, all, proven);
  return text + decoded_beside(gpu, layout, views) + "}";
}

const GpuTable& table_to_measure() {
  return emulated ? emulated_table() : *must(open_plugin());
}

// The device, its speed of copying, and the passes over memory of each size.
std::string passes(const Gpu& gpu, std::span<const std::uint32_t> sizes) {
  const DeviceInfo info = must(gpu.describe());
  const double copy = copy_speed(gpu, emulated ? 1 << 20 : std::size_t{1} << 30);
  std::string all;
  for (const std::uint32_t params : sizes) all += (all.empty() ? "" : ", ") + pass(gpu, params, copy);
  char text[384];
  std::snprintf(text, sizeof text,
                "{\"table\": \"%s\", \"gpu\": \"%s\", \"compute_capability\": \"%d.%d\", \"memory_bytes\": %llu, "
                "\"copy_bytes_per_second\": %.6g, \"passes\": [",
                gpu.table().name, info.name, info.major, info.minor,
                static_cast<unsigned long long>(info.memory_bytes), copy);
  return text + all + "]}";
}

// Empty: there is no such part, or it needs sizes.
std::string part(std::string_view name, std::span<const std::uint32_t> sizes) {
  const GpuTable& table = table_to_measure();
  if (name == "several_gpus") return group_benchmarks(table, emulated);
  const std::unique_ptr<Gpu> gpu = must(Gpu::open(table, 0));
  if (name == "kernels") return kernel_benchmarks(*gpu, emulated);
  if (name == "gpt2") return gpt2_benchmark(*gpu, emulated);
  if (name == "llama") return llama_benchmark(*gpu, emulated);
  if (name == "muon") return muon_benchmark(*gpu, emulated);
  if (name == "mlp") return mlp_benchmark(*gpu, emulated);
  if (sizes.empty()) return "";
  if (name == "passes") return passes(*gpu, sizes);
  if (name == "codec") return codec(*gpu, sizes.front());
  return name == "arrival" ? arrival(*gpu, sizes.front()) : "";
}

}  // namespace
}  // namespace rumor::gpu

int main(int argc, char** argv) {
  std::vector<std::string_view> words(argv + 1, argv + argc);
  rumor::gpu::emulated = !words.empty() && words.front() == "--emulated";
  if (rumor::gpu::emulated) words.erase(words.begin());
  if (words.size() == 2 && words.front() == "--losses") {
    const auto gpu = rumor::gpu::must(rumor::gpu::Gpu::open(rumor::gpu::table_to_measure(), 0));
    if (rumor::gpu::write_losses(*gpu, rumor::gpu::emulated, std::string(words[1]))) return 0;
    std::puts("bench_gpu: SKIPPED, cuBLASLt is not there");
    return 77;
  }
  std::vector<std::uint32_t> sizes;
  for (std::size_t w = 1; w < words.size(); ++w)
    sizes.push_back(static_cast<std::uint32_t>(std::strtoul(words[w].data(), nullptr, 10)));
  const bool sound = !words.empty() && std::count(sizes.begin(), sizes.end(), 0u) == 0;
  const std::string found = sound ? rumor::gpu::part(words.front(), sizes) : "";
  if (!found.empty()) return std::puts(found.c_str()) < 0 ? 1 : 0;
  std::fputs("usage: bench_gpu [--emulated] PART [PARAMS...]\n       bench_gpu [--emulated] --losses FILE\n", stderr);
  return 2;
}
