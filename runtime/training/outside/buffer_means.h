// BufferMeans: the buffers of a program's model that all peers share as means (gossip/PROTOCOL.md 6.15).
//
// A buffer belongs to the model and is not learned by gradients: above all the running mean and variance of batch
// normalisation (Ioffe, Szegedy 2015), which each peer computes from its own data. Means over the peers are what
// averaging their models would give. A number such as num_batches_tracked becomes the greatest of the peers'.
//
// A peer's report of its own: hash of the forms u64, then for each buffer a byte, 1 if it has changed since the peer
// joined, and then its values: f32, bf16 and f16 as f32, f64 whole, integers as i64, little-endian. Tables that never
// change cost a byte each. Means are over the reports in which a buffer has changed, in the order of the nodes, in
// double precision; so peers with equal reports get equal bits. Reports of less than three quarters of the newest one's
// progress do not count: their peers have left, and their weights were others.
//
// Thread: one owner. Memory: shared buffers twice.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/types.h"

namespace rumor {

// A buffer in the local memory of a trainer, all of which stands in one row.
struct SharedBuffer {
  enum class Type : std::uint8_t { f32, f64, bf16, i32, i64, f16 };
  std::string name;
  Type type = Type::f32;
  std::size_t at = 0, count = 0;  // first byte, values

  // The type with this name in safetensors files. Errors: Errc::usage for one that cannot be shared.
  static Result<Type> type_of(const std::string& name);
  std::size_t bytes() const;
};

class BufferMeans {
 public:
  // `local`: the memory as the peer joins. Errors: Errc::limit when a report would be too long for a frame.
  // Requires: all buffers lie within it.
  static Result<BufferMeans> create(std::vector<SharedBuffer> buffers, BytesView local);
  BufferMeans() = default;  // shares nothing

  // Reports tell from now on what has changed from `local`: memory that another peer's reports have filled.
  void begin_at(BytesView local);

  // Returns what this peer has to say, with the memory as it is now; nothing where no buffer has changed.
  Bytes report(BytesView local) const;
  // Whether this is a report of a model with these buffers, by its form.
  bool fits(BytesView report) const;
  // Writes the means into `local`, of each buffer that has changed in any report. Reports of other forms are skipped.
  void show(const NodeBuffers& reports, Bytes& local) const;

 private:
  // The changed buffers of one report, by number; null where it has not changed.
  struct Report {
    std::vector<const std::uint8_t*> values;
  };
  bool read(BytesView bytes, Report& report) const;

  std::vector<SharedBuffer> buffers_;
  Bytes before_;  // the memory of the buffers at the start, one after the other
  std::uint64_t form_ = 0;
};

}  // namespace rumor
