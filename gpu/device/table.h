// GpuTable: what a GPU can do, as plain function pointers: the seam between this program, which knows no CUDA, and the
// plugin librumor_cuda.so, which is opened at run time (gpu/device/plugin.h). gpu/README.md tells what lies where.
//
// Every slot has a reference on the CPU and must give the same bits for every size, but for what
// gpu/device/model_table.h says: the tests compare them, on a GPU and, with the same kernels compiled as plain C++,
// without one (tests/gpu).
//
// Memory: pointers marked `device` come from allocate() of a device of the same ordinal; all others are the caller's.
// Device memory is aligned for everything; pointers into the middle of it may be as unaligned as their type allows.
// Order: a Device has one stream. Its slots return before the work is done and happen in the order of the calls;
// copy_out() and wait() wait. Whatever went wrong in between, they report. Two devices of one ordinal know of no order
// between them, but what one has waited for.
// Thread: a Device has one caller at a time. Different devices are independent; those of a Group have one caller.
// Versions: both sides must have the same table_version; nothing here changes without a new one.
// C++17 and no library types: nvcc compiles this header too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/device/model_table.h"
#include "gpu/device/picture_table.h"
#include "runtime/base/step_rule.h"

namespace rumor::gpu {

inline constexpr std::uint32_t table_version = 12;
// The one symbol that the plugin exports: extern "C" const GpuTable* rumor_gpu_table().
inline constexpr const char* table_symbol = "rumor_gpu_table";

// The unit of work of a pass over all parameters.
inline constexpr std::uint32_t tile_params = 8192;
inline constexpr std::uint32_t no_position = 0xffff'ffff;

enum class Status : int {
  ok = 0,
  no_driver = 1,        // no NVIDIA driver is loaded
  driver_too_old = 2,   // it does not know the CUDA version of the plugin
  no_device = 3,        // the driver knows no GPU, or none of this number
  no_architecture = 4,  // the plugin has no code for this GPU
  out_of_memory = 5,
  failed = 6,  // a kernel or copy failed: the device cannot be used any more
};

// One line that names the cause; always ends with a zero.
struct ErrorText {
  char text[256];
};

struct Device;
struct Group;
struct Recording;

struct DeviceInfo {
  char name[128];
  int major, minor;  // compute capability
  std::uint64_t memory_bytes, free_bytes;
};

// Which change a scan adds.
enum class Change : std::uint32_t {
  floats = 0,  // change[i]
  bf16 = 1,    // bf16[i], the upper half of a float
  sgd = 2,     // from here on: rule.kind of that name with gradient change[i]; the moments in `rule` are updated
  momentum = 3,
  rmsprop = 4,
  adam = 5,
  adamw = 6,
  adaptive_revision = 7,
};

// Candidates of one tile lie next to each other, ascending; tiles in any order.
struct Tile {
  std::uint32_t begin;  // in the arrays of candidates
  std::uint32_t count;
};

// The result of a scan and of a selection; in device memory, read by the caller in one copy.
struct Selection {
  // Results of the scan.
  std::uint32_t candidates;        // those there are, be there room for them or not
  std::uint32_t first_not_finite;  // the first parameter whose sum is no finite number, or no_position
  // Results of the selection.
  std::uint32_t selected;   // as many as wanted, or all there are
  std::uint32_t threshold;  // magnitude bits of the least of them
  std::uint32_t ties;       // of those exactly at the threshold, how many are selected: the first ones
};

struct ScanArgs {
  float* residual;            // device
  const float* change;        // device
  const std::uint16_t* bf16;  // device
  std::uint32_t params;       // at most 2^31 - 1
  std::uint32_t cutoff;       // magnitude bits, 1 to those of infinity
  std::uint32_t* index;       // device: candidates, position and value
  float* value;               // device
  std::uint32_t room;         // in both; what does not fit is counted and not written
  Tile* tiles;                // device: one for each tile_params parameters, rounded up
  Selection* selection;       // device: `candidates` and `first_not_finite` are written
  Change form;
  StepRule rule;  // its pointers: device
};

// Where a selection looks: the candidates of a scan, or (tiles null) all parameters of what was scanned.
struct Source {
  const float* value;          // device
  const std::uint32_t* index;  // device; not read without tiles: value[i] is that of parameter i
  const Tile* tiles;           // device, or null
  std::uint32_t params;        // that were scanned: of the layout, or of one tensor
  std::uint32_t room;          // as in ScanArgs; where there are more candidates nothing is selected
  std::uint32_t first;         // position in the layout of the first parameter that was scanned
};

// Scratch of a selection, device: tile_counts two for each tile, bins radix_bins.
inline constexpr std::uint32_t radix_bins = 2048;
struct SelectScratch {
  std::uint32_t* bins;
  std::uint32_t* tile_counts;
};

// Consecutive entries of one tensor, coded by one divisor: compress/payload/rice_kernels.h says what the members mean.
struct CodePart {
  std::uint32_t first, span, count;
  std::uint32_t low_bits;
  std::uint32_t thirds;     // 0 or 1
  std::uint32_t must_fill;  // 1: another part of the tensor follows, so the last entry must be at the end of this one
};

struct CodeSegment {
  std::uint32_t first_part, parts;
  std::uint64_t first_entry;
  std::uint64_t at;   // bit at which the body begins
  std::uint64_t end;  // decode: bit, whole bytes, at which it must end
};

// Entries from `first` to the next run or the end move by `step`.
struct StepSpan {
  std::uint64_t first;
  std::uint32_t step;
};

struct Entries {
  const std::uint32_t* index;    // device, ascending
  const std::uint8_t* negative;  // device
  std::uint32_t count;
  const StepSpan* steps;  // device, the first from entry 0 on
  std::uint32_t step_count;
};

struct GpuTable {
  std::uint32_t version;  // table_version of whoever filled it
  std::uint32_t bytes;    // sizeof(GpuTable)
  const char* name;       // "cuda", or "emulated" in tests

  // ---- devices. `error` is filled where the result is not ok.

  Status (*count)(int* devices, ErrorText* error);
  // One more stream on the GPU of this number. urgent: the GPU begins its work before that of others.
  Status (*open)(int ordinal, bool urgent, Device** device, ErrorText* error);
  void (*close)(Device* device);
  Status (*describe)(Device* device, DeviceInfo* info, ErrorText* error);

  // ---- memory

  // Null where there is not enough.
  void* (*allocate)(Device* device, std::size_t bytes);
  void (*release)(Device* device, void* memory);
  // `from` may be reused when it returns.
  void (*copy_in)(Device* device, void* to, const void* from, std::size_t bytes);
  void (*fill)(Device* device, void* to, int byte, std::size_t bytes);
  // From device memory to device memory, not overlapping.
  void (*copy_within)(Device* device, void* to, const void* from, std::size_t bytes);
  Status (*copy_out)(Device* device, void* to, const void* from, std::size_t bytes, ErrorText* error);
  Status (*wait)(Device* device, ErrorText* error);

  // ---- work that is the same again and again: CUDA graphs

  // From here to end_recording() work on this device is written down instead of done. Only slots that begin work on
  // device memory may be called: none that allocates, releases, waits, or copies from or to the host; and what products
  // need beside their arguments must have been there before. Errors: Status::failed.
  Status (*begin_recording)(Device* device, ErrorText* error);
  // Errors: Status::failed where something could not be written down; the device goes on as if nothing had been called.
  Status (*end_recording)(Device* device, Recording** recording, ErrorText* error);
  // Begins all that was written down, with the arguments of then. False where memory that products of it need has moved
  // since: nothing was begun, and it is to be recorded anew.
  bool (*repeat)(Device* device, Recording* recording);
  // Waits for what the device is doing. Before it is closed.
  void (*forget)(Recording* recording);

  // ---- several devices, each of another GPU, that compute together: by NCCL, if it is there

  // Errors: Status::failed, naming what is missing. The devices outlive the group. Of none: whether there could be one.
  Status (*join)(Device* const* devices, int count, Group** group, ErrorText* error);
  void (*part)(Group* group);
  // values[0][i] = values[0][i] + values[1][i] + ...; values[d] lies on device d, and all but the first stay. Added in
  // an order of the library's own. Happens on each device in its order, once all are there.
  Status (*reduce)(Group* group, float* const* values, std::uint64_t count, ErrorText* error);
  // memory[d] = memory[0], likewise.
  Status (*spread)(Group* group, void* const* memory, std::size_t bytes, ErrorText* error);

  // ---- compression: references in compress/

  // residual += change; candidates are those with magnitude bits >= cutoff. Reference: compress/select/scan_kernels.h.
  void (*scan)(Device* device, const ScanArgs* args);

  // The `wanted` largest magnitudes, or all where fewer reach `least` (magnitude bits, at least 1): fills the
  // selection. Reference: compress/select/selection.h.
  void (*select)(Device* device, const Source* source, std::uint32_t wanted, std::uint32_t least, SelectScratch scratch,
                 Selection* selection);

  // Writes the entries that select() chose, ascending: position in the layout, and 1 if the value is negative. Call it
  // after select() with the same arguments. index and negative have room for the number wanted.
  void (*emit)(Device* device, const Source* source, SelectScratch scratch, const Selection* selection,
               std::uint32_t* index, std::uint8_t* negative);

  // residual[i] -= step with the sign of residual[i], at every entry.
  void (*take_sent)(Device* device, float* residual, const std::uint32_t* index, std::uint32_t count, float step);

  // residual[index[e]] += change[e]. No index twice.
  void (*add_changes)(Device* device, float* residual, const std::uint32_t* index, const float* change,
                      std::uint32_t count);

  // to[index[e]] = value[e]. An index may come more than once, with one value.
  void (*put)(Device* device, const std::uint32_t* index, const float* value, std::uint32_t count, float* to);

  // sums[p]: the magnitudes at the entries with positions in first + ([p, p + 1) << piece_shift), added as doubles in
  // order.
  void (*sum_magnitudes)(Device* device, const float* residual, const std::uint32_t* index, std::uint32_t count,
                         std::uint32_t first, std::uint32_t piece_shift, std::uint32_t pieces, double* sums);

  // below[e]: how many of the ascending index[] are below edges[e].
  void (*count_below)(Device* device, const std::uint32_t* index, std::uint32_t count, const std::uint32_t* edges,
                      std::uint32_t edge_count, std::uint32_t* below);

  // to[i] = from[at[i]]
  void (*gather)(Device* device, const std::uint32_t* from, const std::uint32_t* at, std::uint32_t count,
                 std::uint32_t* to);

  // ---- payloads: compress/FORMAT.md 4.6, references in compress/payload/rice_segment.h. `bytes` begins with a word
  // of four.

  // Writes the bodies of segments: ends[s] is the bit after that of segment s. The bits of a body must be zero before,
  // and no two bodies share a byte; bodies of compress/payload/rice_segment.h's rice_body_bits_max() are certain to
  // fit.
  void (*encode)(Device* device, const CodePart* parts, const CodeSegment* segments, std::uint32_t segment_count,
                 const std::uint32_t* index, const std::uint8_t* negative, std::uint8_t* bytes, std::uint64_t* ends);

  // Reads bodies: sound[s] is 1, or 0 where the bytes hold no such segment; then its entries are unspecified, and
  // nothing outside of them is written. Eight bytes behind the last body can be read.
  void (*decode)(Device* device, const CodePart* parts, const CodeSegment* segments, std::uint32_t segment_count,
                 const std::uint8_t* bytes, std::uint32_t* index, std::uint8_t* negative, std::uint32_t* sound);

  // ---- replica: references in compress/payload/apply.h and runtime/replica/fingerprint.h

  // weights[i] += step or -step, mod 2^32; view[i] = weights[i] * unit, unless view is null.
  void (*apply)(Device* device, const Entries* entries, std::int32_t* weights, float* view, float unit);

  // view[i] = weights[i] * unit, for all. Reference: models::to_floats().
  void (*show)(Device* device, const std::int32_t* weights, std::uint32_t params, float* view, float unit);

  // lanes[0] and lanes[1] += the fingerprint of the change, mod 2^32.
  void (*fingerprint_entries)(Device* device, const Entries* entries, std::uint64_t seed, std::uint32_t* lanes);
  // lanes[0] and lanes[1] += that of all weights.
  void (*fingerprint_weights)(Device* device, const std::int32_t* weights, std::uint32_t params, std::uint64_t seed,
                              std::uint32_t* lanes);

  // ---- models: gpu/device/model_table.h, gpu/device/picture_table.h
  ModelTable model;
  PictureTable pictures;
};

}  // namespace rumor::gpu
