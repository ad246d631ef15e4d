// The slots of a table: which kernels each slot starts, in which grids; and the table made of them and of a machine.
//
// The file that includes this one is the machine. Before the include it defines how to start a kernel,
//   template <class... Params, class... Args>
//   void launch(Device& device, void (*kernel)(Params...), std::uint64_t blocks, unsigned threads, Args... args);
//   void fill_bytes(Device& device, void* to, int byte, std::size_t bytes);
// and after it the functions that are declared in namespace machine.
#pragma once

#include "gpu/cuda/apply.cuh"
#include "gpu/cuda/emit.cuh"
#include "gpu/cuda/grids.cuh"
#include "gpu/cuda/llama_slots.cuh"
#include "gpu/cuda/model_slots.cuh"
#include "gpu/cuda/optimizer.cuh"
#include "gpu/cuda/picture_slots.cuh"
#include "gpu/cuda/rice.cuh"
#include "gpu/cuda/scan.cuh"
#include "gpu/cuda/select.cuh"
#include "gpu/device/table.h"

namespace rumor::gpu {
namespace slots {

constexpr unsigned plain_threads = 256;
inline void fill(Device* device, void* to, int byte, std::size_t bytes) {
  if (bytes != 0) fill_bytes(*device, to, byte, bytes);
}

inline void scan(Device* device, const ScanArgs* args) {
  launch(*device, begin_scan, 1, 1, args->selection);
  const std::uint64_t tiles = blocks_of(args->params, tile_params);
  if (tiles == 0) return;
  const auto start = [&](auto* kernel) { launch(*device, kernel, tiles, scan_threads, *args); };
  switch (args->form) {
    case Change::floats:
      return start(scan_tiles<Change::floats>);
    case Change::bf16:
      return start(scan_tiles<Change::bf16>);
    case Change::sgd:
      return start(scan_tiles<Change::sgd>);
    case Change::momentum:
      return start(scan_tiles<Change::momentum>);
    case Change::rmsprop:
      return start(scan_tiles<Change::rmsprop>);
    case Change::adam:
      return start(scan_tiles<Change::adam>);
    case Change::adamw:
      return start(scan_tiles<Change::adamw>);
    case Change::nadamw:
      return start(scan_tiles<Change::nadamw>);
    case Change::adaptive_revision:
      return start(scan_tiles<Change::adaptive_revision>);
    case Change::sgdw:
      return start(scan_tiles<Change::sgdw>);
  }
}

inline void select(Device* device, const Source* source, std::uint32_t wanted, std::uint32_t least,
                   SelectScratch scratch, Selection* selection) {
  fill_bytes(*device, scratch.bins, 0, radix_bins * sizeof(std::uint32_t));
  const std::uint32_t most = source->tiles != nullptr ? source->room : source->params;
  const std::uint64_t blocks = most == 0 ? 1 : stride_blocks(most, 8 * select_threads);
  for (unsigned digit = 0; digit < digit_count; ++digit) {
    launch(*device, count_digits, blocks, select_threads, *source, digit, least, scratch.bins, selection);
    launch(*device, find_digit, 1, select_threads, digit, wanted, scratch.bins, selection);
  }
}

inline void emit(Device* device, const Source* source, SelectScratch scratch, const Selection* selection,
                 std::uint32_t* index, std::uint8_t* negative) {
  const std::uint64_t tiles = blocks_of(source->params, tile_params);
  if (tiles == 0) return;
  const std::uint64_t blocks = blocks_of(tiles, emit_warps);
  launch(*device, count_tiles, blocks, emit_threads, *source, selection, scratch.tile_counts);
  launch(*device, place_tiles, 1, place_threads, static_cast<std::uint32_t>(tiles), scratch.tile_counts);
  launch(*device, write_tiles, blocks, emit_threads, *source, selection, scratch.tile_counts, index, negative);
}

inline void take_sent(Device* device, float* residual, const std::uint32_t* index, std::uint32_t count, float step) {
  if (count == 0) return;
  launch(*device, take_sent_entries, stride_blocks(count, plain_threads), plain_threads, residual, index, count, step);
}

inline void add_changes(Device* device, float* residual, const std::uint32_t* index, const float* change,
                        std::uint32_t count) {
  if (count == 0) return;
  launch(*device, add_entry_changes, stride_blocks(count, plain_threads), plain_threads, residual, index, change,
         count);
}

inline void put(Device* device, const std::uint32_t* index, const float* value, std::uint32_t count, float* to) {
  if (count == 0) return;
  launch(*device, put_values, stride_blocks(count, plain_threads), plain_threads, index, value, count, to);
}

inline void sum_magnitudes(Device* device, const float* residual, const std::uint32_t* index, std::uint32_t count,
                           std::uint32_t first, std::uint32_t piece_shift, std::uint32_t pieces, double* sums) {
  constexpr unsigned threads = 32;  // there are few pieces: one warp per block spreads them over many multiprocessors
  if (pieces == 0) return;
  launch(*device, sum_pieces, blocks_of(pieces, threads), threads, residual, index, count, first, piece_shift, pieces,
         sums);
}

inline void count_below(Device* device, const std::uint32_t* index, std::uint32_t count, const std::uint32_t* edges,
                        std::uint32_t edge_count, std::uint32_t* below) {
  if (edge_count == 0) return;
  launch(*device, count_below_edges, blocks_of(edge_count, plain_threads), plain_threads, index, count, edges,
         edge_count, below);
}

inline void gather(Device* device, const std::uint32_t* from, const std::uint32_t* at, std::uint32_t count,
                   std::uint32_t* to) {
  if (count == 0) return;
  launch(*device, gather_words, stride_blocks(count, plain_threads), plain_threads, from, at, count, to);
}

inline void encode(Device* device, const CodePart* parts, const CodeSegment* segments, std::uint32_t segment_count,
                   const std::uint32_t* index, const std::uint8_t* negative, std::uint8_t* bytes, std::uint64_t* ends) {
  if (segment_count == 0) return;
  launch(*device, encode_segments, segment_count, code_threads, parts, segments, index, negative,
         reinterpret_cast<std::uint32_t*>(bytes), ends);
}

inline void decode(Device* device, const CodePart* parts, const CodeSegment* segments, std::uint32_t segment_count,
                   const std::uint8_t* bytes, std::uint32_t* index, std::uint8_t* negative, std::uint32_t* sound) {
  if (segment_count == 0) return;
  launch(*device, decode_segments, segment_count, code_threads, parts, segments,
         reinterpret_cast<const std::uint32_t*>(bytes), index, negative, sound);
}

inline void apply(Device* device, const Entries* entries, std::int32_t* weights, float* view, float unit) {
  if (entries->count == 0) return;
  launch(*device, apply_entries, stride_blocks(entries->count, apply_threads), apply_threads, *entries, weights, view,
         unit);
}

inline void show(Device* device, const std::int32_t* weights, std::uint32_t params, float* view, float unit) {
  if (params == 0) return;
  launch(*device, show_weights, stride_blocks(params, 4 * apply_threads), apply_threads, weights, params, view, unit);
}

inline void fingerprint_entries(Device* device, const Entries* entries, std::uint64_t seed, std::uint32_t* lanes) {
  if (entries->count == 0) return;
  launch(*device, add_entry_fingerprints, stride_blocks(entries->count, 4 * apply_threads), apply_threads, *entries,
         seed, lanes);
}

inline void fingerprint_weights(Device* device, const std::int32_t* weights, std::uint32_t params, std::uint64_t seed,
                                std::uint32_t* lanes) {
  if (params == 0) return;
  launch(*device, add_weight_fingerprints, stride_blocks(params, 8 * apply_threads), apply_threads, weights, params,
         seed, lanes);
}

// ---- optimizers

// Starts a kernel that loops over `count` values in strides of its grid.
template <class Kernel, class... Args>
void over_parameters(Device* device, Kernel* kernel, std::uint64_t count, Args... args) {
  if (count != 0) launch(*device, kernel, stride_blocks(count, step_threads), step_threads, args...);
}

// Starts a kernel with a block for each stretch of each matrix of a group.
template <class Kernel, class... Args>
void over_group(Device* device, Kernel* kernel, const MatrixGroup& group, Args... args) {
  const std::uint64_t blocks = group.count * square_partials(group.numbers());
  if (blocks != 0) launch(*device, kernel, blocks, step_threads, group, args...);
}

inline void look_ahead(Device* device, MatrixGroup group, float momentum, float* gradient, float* kept) {
  over_group(device, look_ahead_group, group, momentum, gradient, kept);
}

inline void square_sums(Device* device, MatrixGroup group, const float* x, double* partial, double* total) {
  over_group(device, sum_group_squares, group, x, partial);
  const std::uint64_t partials = square_partials(group.numbers());
  if (group.count != 0) launch(*device, join_squares, group.count, step_threads, partials, partial, total);
}

inline void scale_to_one(Device* device, MatrixGroup group, double norm_min, const double* squares, const float* x,
                         Numbers y) {
  by_kind(y, [&](auto kind) {
    using Number = decltype(kind);
    over_group(device, scale_group<Number>, group, norm_min, squares, x, those_of<Number>(y));
  });
}

inline void quadratic(Device* device, std::uint32_t count, std::uint32_t order, Quadratic numbers, const float* gram,
                      const float* square, Numbers y) {
  const std::uint64_t all = std::uint64_t{order} * order * count;
  if (all == 0) return;
  by_kind(y, [&](auto kind) {
    using Number = decltype(kind);
    launch(*device, add_powers<Number>, stride_blocks(all, eight * step_threads), step_threads, all, order, numbers,
           gram, square, those_of<Number>(y));
  });
}

inline void add_share(Device* device, std::uint64_t count, const float* from, float factor, const float* change,
                      float* to) {
  over_parameters(device, add_share_of_change, count, count, from, factor, change, to);
}

}  // namespace slots

inline OptimizerTable optimizer_table() {
  OptimizerTable table = {};
  table.look_ahead = slots::look_ahead;
  table.square_sums = slots::square_sums;
  table.scale_to_one = slots::scale_to_one;
  table.quadratic = slots::quadratic;
  table.add_share = slots::add_share;
  return table;
}

// Devices and their memory, as gpu/device/table.h defines them.
namespace machine {

Status count(int* devices, ErrorText* error);
Status open(int ordinal, bool urgent, Device** device, ErrorText* error);
void close(Device* device);
Status describe(Device* device, DeviceInfo* info, ErrorText* error);
void* allocate(Device* device, std::size_t bytes);
void release(Device* device, void* memory);
void copy_in(Device* device, void* to, const void* from, std::size_t bytes);
void copy_within(Device* device, void* to, const void* from, std::size_t bytes);
Status copy_out(Device* device, void* to, const void* from, std::size_t bytes, ErrorText* error);
Status wait(Device* device, ErrorText* error);
Status begin_recording(Device* device, ErrorText* error);
Status end_recording(Device* device, Recording** recording, ErrorText* error);
bool repeat(Device* device, Recording* recording);
void forget(Recording* recording);
Status join(Device* const* devices, int count, Group** group, ErrorText* error);
void part(Group* group);
Status reduce(Group* group, float* const* values, std::uint64_t count, ErrorText* error);
Status spread(Group* group, void* const* memory, std::size_t bytes, ErrorText* error);

}  // namespace machine

// The table of this machine.
inline GpuTable make_table(const char* name) {
  GpuTable table = {};
  table.version = table_version;
  table.bytes = sizeof(GpuTable);
  table.name = name;
  table.count = machine::count;
  table.open = machine::open;
  table.close = machine::close;
  table.describe = machine::describe;
  table.allocate = machine::allocate;
  table.release = machine::release;
  table.copy_in = machine::copy_in;
  table.fill = slots::fill;
  table.copy_within = machine::copy_within;
  table.copy_out = machine::copy_out;
  table.wait = machine::wait;
  table.begin_recording = machine::begin_recording;
  table.end_recording = machine::end_recording;
  table.repeat = machine::repeat;
  table.forget = machine::forget;
  table.join = machine::join;
  table.part = machine::part;
  table.reduce = machine::reduce;
  table.spread = machine::spread;
  table.scan = slots::scan;
  table.select = slots::select;
  table.emit = slots::emit;
  table.take_sent = slots::take_sent;
  table.add_changes = slots::add_changes;
  table.put = slots::put;
  table.sum_magnitudes = slots::sum_magnitudes;
  table.count_below = slots::count_below;
  table.gather = slots::gather;
  table.encode = slots::encode;
  table.decode = slots::decode;
  table.apply = slots::apply;
  table.show = slots::show;
  table.fingerprint_entries = slots::fingerprint_entries;
  table.fingerprint_weights = slots::fingerprint_weights;
  table.model = model_table();
  table.llama = llama_table();
  table.pictures = picture_table();
  table.optimizers = optimizer_table();
  return table;
}

}  // namespace rumor::gpu
