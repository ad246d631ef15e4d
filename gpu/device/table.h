// GpuTable: the functions of a GPU as plain function pointers. It is the interface between this program, which knows no
// CUDA, and the plugin librumor_cuda.so, which is opened at run time (gpu/device/plugin.h). gpu/README.md lists the
// files.
//
// Every slot has a reference on the CPU and must give the same bits for every size, except where
// gpu/device/model_table.h says otherwise. The tests compare them on a GPU and, with the same kernels compiled as plain
// C++, without one (tests/gpu).
//
// Memory: pointers marked `device` come from allocate() of a device of the same ordinal; all others are the caller's.
// Device memory is aligned for every type; pointers into it need only the alignment of their type.
// Order: a Device has one stream. Its slots return before the work is done; the work runs in the order of the calls.
// copy_out() and wait() wait, and report any failure of earlier work. Only waiting orders two devices of one ordinal.
// Thread: a Device has one caller at a time. Different devices are independent; those of a Group have one caller.
// Versions: both sides must have the same table_version; every change here needs a new one.
// C++17 and no library types: nvcc compiles this header too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/device/llama_table.h"
#include "gpu/device/model_table.h"
#include "gpu/device/optimizer_table.h"
#include "gpu/device/picture_table.h"
#include "runtime/base/step_rule.h"

namespace rumor::gpu {

inline constexpr std::uint32_t table_version = 15;
// The one symbol that the plugin exports: extern "C" const GpuTable* rumor_gpu_table().
inline constexpr const char* table_symbol = "rumor_gpu_table";

// The number of parameters in one unit of work of a pass over all parameters.
inline constexpr std::uint32_t tile_params = 8192;
inline constexpr std::uint32_t no_position = 0xffff'ffff;

enum class Status : int {
  ok = 0,
  no_driver = 1,        // no NVIDIA driver is loaded
  driver_too_old = 2,   // the driver does not know the plugin's CUDA version
  no_device = 3,        // the driver knows no GPU, or none with this number
  no_architecture = 4,  // the plugin has no code for this GPU
  out_of_memory = 5,
  failed = 6,  // a kernel or copy failed: the device is no longer usable
};

// One line that names the cause; always ends with a zero byte.
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
  sgd = 2,     // this and later forms: rule.kind of that name, gradient change[i]; updates the moments in `rule`
  momentum = 3,
  rmsprop = 4,
  adam = 5,
  adamw = 6,
  adaptive_revision = 7,
  nadamw = 8,
  sgdw = 9,  // a step_rule without a kind of its own: of Muon (gpu/optimizers/optimizer.h)
};

// Candidates of one tile are adjacent and ascending; tiles are in any order.
struct Tile {
  std::uint32_t begin;  // in the arrays of candidates
  std::uint32_t count;
};

// The result of a scan and of a selection; in device memory, read by the caller in one copy.
struct Selection {
  // Results of the scan.
  std::uint32_t candidates;        // all candidates found, even if there is no room for them
  std::uint32_t first_not_finite;  // the first parameter whose sum is not finite, or no_position
  // Results of the selection.
  std::uint32_t selected;   // the number wanted, or all there are
  std::uint32_t threshold;  // magnitude bits of the smallest selected value
  std::uint32_t ties;       // how many values exactly at the threshold are selected: the first ones
};

struct ScanArgs {
  float* residual;            // device
  const float* change;        // device
  const std::uint16_t* bf16;  // device
  std::uint32_t params;       // at most 2^31 - 1
  std::uint32_t cutoff;       // magnitude bits, 1 to those of infinity
  std::uint32_t* index;       // device: candidates, position and value
  float* value;               // device
  std::uint32_t room;         // in both arrays; candidates beyond it are counted but not written
  Tile* tiles;                // device: one for each tile_params parameters, rounded up
  Selection* selection;       // device: `candidates` and `first_not_finite` are written
  Change form;
  StepRule rule;  // its pointers: device
};

// The input of a selection: the candidates of a scan, or (tiles null) all parameters that were scanned.
struct Source {
  const float* value;          // device
  const std::uint32_t* index;  // device; not read without tiles: value[i] belongs to parameter i
  const Tile* tiles;           // device, or null
  std::uint32_t params;        // number of scanned parameters: of the layout, or of one tensor
  std::uint32_t room;          // as in ScanArgs; with more candidates than this nothing is selected
  std::uint32_t first;         // position in the layout of the first scanned parameter
};

// Scratch of a selection, device: tile_counts has two numbers per tile, bins has radix_bins.
inline constexpr std::uint32_t radix_bins = 2048;
struct SelectScratch {
  std::uint32_t* bins;
  std::uint32_t* tile_counts;
};

// Consecutive entries of one tensor, coded with one divisor: compress/payload/rice_kernels.h defines the members.
struct CodePart {
  std::uint32_t first, span, count;
  std::uint32_t low_bits;
  std::uint32_t thirds;     // 0 or 1
  std::uint32_t must_fill;  // 1: another part of the tensor follows, so the last entry must be at the end of this part
};

struct CodeSegment {
  std::uint32_t first_part, parts;
  std::uint64_t first_entry;
  std::uint64_t at;   // bit at which the body begins
  std::uint64_t end;  // decode: bit, a multiple of 8, at which it must end
};

// Entries from `first` up to the next span or the end move by `step`.
struct StepSpan {
  std::uint64_t first;
  std::uint32_t step;
};

struct Entries {
  const std::uint32_t* index;    // device, ascending
  const std::uint8_t* negative;  // device
  std::uint32_t count;
  const StepSpan* steps;  // device; the first span begins at entry 0
  std::uint32_t step_count;
};

struct GpuTable {
  std::uint32_t version;  // table_version of the side that filled the table
  std::uint32_t bytes;    // sizeof(GpuTable)
  const char* name;       // "cuda", or "emulated" in tests

  // ---- devices. `error` is filled if the result is not ok.

  Status (*count)(int* devices, ErrorText* error);
  // Opens one more stream on the GPU with this number. urgent: the GPU begins its work before that of other streams.
  Status (*open)(int ordinal, bool urgent, Device** device, ErrorText* error);
  void (*close)(Device* device);
  Status (*describe)(Device* device, DeviceInfo* info, ErrorText* error);

  // ---- memory

  // Returns null if there is not enough memory.
  void* (*allocate)(Device* device, std::size_t bytes);
  void (*release)(Device* device, void* memory);
  // The caller may reuse `from` when this returns.
  void (*copy_in)(Device* device, void* to, const void* from, std::size_t bytes);
  void (*fill)(Device* device, void* to, int byte, std::size_t bytes);
  // Copies within device memory; the ranges do not overlap.
  void (*copy_within)(Device* device, void* to, const void* from, std::size_t bytes);
  Status (*copy_out)(Device* device, void* to, const void* from, std::size_t bytes, ErrorText* error);
  Status (*wait)(Device* device, ErrorText* error);

  // ---- repeated work: CUDA graphs

  // From here to end_recording(), work on this device is recorded instead of done. Only slots that begin work on device
  // memory may be called: none that allocates, releases, waits, or copies from or to the host. Memory that products
  // need besides their arguments must already exist. Errors: Status::failed.
  Status (*begin_recording)(Device* device, ErrorText* error);
  // Errors: Status::failed if something could not be recorded; the device then continues as if nothing had been called.
  Status (*end_recording)(Device* device, Recording** recording, ErrorText* error);
  // Begins all recorded work with the arguments it was recorded with. Returns false if memory that its products need
  // has moved since: then nothing was begun, and the work must be recorded anew.
  bool (*repeat)(Device* device, Recording* recording);
  // Waits for the device's work, then frees the recording. Call it before the device is closed.
  void (*forget)(Recording* recording);

  // ---- several devices, each of another GPU, that compute together: by NCCL, if it is installed

  // Errors: Status::failed, naming what is missing. The devices outlive the group. A count of 0 checks whether a group
  // is possible.
  Status (*join)(Device* const* devices, int count, Group** group, ErrorText* error);
  void (*part)(Group* group);
  // values[0][i] = values[0][i] + values[1][i] + ...; values[d] is on device d, and all but the first stay unchanged.
  // The library chooses the order of additions. Each device runs this in the order of its stream, once all devices have
  // reached it.
  Status (*reduce)(Group* group, float* const* values, std::uint64_t count, ErrorText* error);
  // memory[d] = memory[0], under the same rules.
  Status (*spread)(Group* group, void* const* memory, std::size_t bytes, ErrorText* error);

  // ---- compression: references in compress/

  // residual += change; candidates are those with magnitude bits >= cutoff. With a room of 0, index and value may be
  // null. Reference: compress/select/scan_kernels.h.
  void (*scan)(Device* device, const ScanArgs* args);

  // Selects the `wanted` largest magnitudes, or all that reach `least` if those are fewer (magnitude bits, at least 1).
  // Fills the selection. Reference: compress/select/selection.h.
  void (*select)(Device* device, const Source* source, std::uint32_t wanted, std::uint32_t least, SelectScratch scratch,
                 Selection* selection);

  // Writes the entries that select() chose, ascending: the position in the layout, and 1 if the value is negative. Call
  // it after select() with the same arguments. index and negative have room for the number wanted.
  void (*emit)(Device* device, const Source* source, SelectScratch scratch, const Selection* selection,
               std::uint32_t* index, std::uint8_t* negative);

  // residual[i] -= step with the sign of residual[i], at every entry.
  void (*take_sent)(Device* device, float* residual, const std::uint32_t* index, std::uint32_t count, float step);

  // residual[index[e]] += change[e]. Each index occurs once at most.
  void (*add_changes)(Device* device, float* residual, const std::uint32_t* index, const float* change,
                      std::uint32_t count);

  // to[index[e]] = value[e]. An index may occur several times, always with the same value.
  void (*put)(Device* device, const std::uint32_t* index, const float* value, std::uint32_t count, float* to);

  // sums[p]: the sum of magnitudes at the entries with positions in first + ([p, p + 1) << piece_shift), added as
  // doubles in order.
  void (*sum_magnitudes)(Device* device, const float* residual, const std::uint32_t* index, std::uint32_t count,
                         std::uint32_t first, std::uint32_t piece_shift, std::uint32_t pieces, double* sums);

  // below[e]: how many of the ascending index[] are below edges[e].
  void (*count_below)(Device* device, const std::uint32_t* index, std::uint32_t count, const std::uint32_t* edges,
                      std::uint32_t edge_count, std::uint32_t* below);

  // to[i] = from[at[i]]
  void (*gather)(Device* device, const std::uint32_t* from, const std::uint32_t* at, std::uint32_t count,
                 std::uint32_t* to);

  // ---- payloads: compress/FORMAT.md 4.6, references in compress/payload/rice_segment.h. `bytes` is aligned to four
  // bytes.

  // Writes the bodies of segments: ends[s] is the bit after that of segment s. The bits of a body must be zero before,
  // and no two bodies share a byte. A body of rice_body_bits_max() (compress/payload/rice_segment.h) always fits.
  void (*encode)(Device* device, const CodePart* parts, const CodeSegment* segments, std::uint32_t segment_count,
                 const std::uint32_t* index, const std::uint8_t* negative, std::uint8_t* bytes, std::uint64_t* ends);

  // Reads bodies: sound[s] is 1, or 0 if the bytes hold no such segment. The entries of such a segment are unspecified,
  // and nothing outside of them is written. Eight bytes behind the last body must be readable.
  void (*decode)(Device* device, const CodePart* parts, const CodeSegment* segments, std::uint32_t segment_count,
                 const std::uint8_t* bytes, std::uint32_t* index, std::uint8_t* negative, std::uint32_t* sound);

  // ---- replica: references in compress/payload/apply.h and runtime/replica/fingerprint.h

  // weights[i] += step or -step, mod 2^32; view[i] = weights[i] * unit, unless view is null.
  void (*apply)(Device* device, const Entries* entries, std::int32_t* weights, float* view, float unit);

  // view[i] = weights[i] * unit, for all parameters. Reference: models::to_floats().
  void (*show)(Device* device, const std::int32_t* weights, std::uint32_t params, float* view, float unit);

  // lanes[0] and lanes[1] += the fingerprint of the change, mod 2^32.
  void (*fingerprint_entries)(Device* device, const Entries* entries, std::uint64_t seed, std::uint32_t* lanes);
  // lanes[0] and lanes[1] += the fingerprint of all weights.
  void (*fingerprint_weights)(Device* device, const std::int32_t* weights, std::uint32_t params, std::uint64_t seed,
                              std::uint32_t* lanes);

  // ---- models and optimizers: gpu/device/model_table.h, llama_table.h, picture_table.h, optimizer_table.h
  ModelTable model;
  LlamaTable llama;
  PictureTable pictures;
  OptimizerTable optimizers;
};

}  // namespace rumor::gpu
