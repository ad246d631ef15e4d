// DeviceArrivals: updates of others on their way to the weights on a GPU. Their payloads go there as they come, and are
// decoded on a stream of their own while the trainer's computes a step (gpu/README.md, chapter 5).
//
// Thread: the protocol's, also while a step is computed: nothing here is the step's. Memory, device: the largest
// payload, and 5 bytes an entry that is on its way or was collected last; room for half as many entries as there are
// parameters is kept.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/compress/codec.h"
#include "runtime/base/bytes.h"

namespace rumor {

class DeviceArrivals {
 public:
  // Refers to `gpu`, where the weights are. Errors: those of Gpu::open().
  static Result<DeviceArrivals> create(const gpu::Gpu& gpu, ParamLayout layout);

  // Begins to decode the payload on the GPU. Waits only where memory has to grow. find() will not have the payload when
  // a quarter of the parameters or 256 payloads are on their way already, for want of memory, or if it is damaged.
  void begin(const std::shared_ptr<const Bytes>& payload);

  // Waits for all that was begun: find() has it from now on, and no longer what it had before. Requires: work on the
  // weights' stream that reads entries found before is over. Errors: Errc::corrupt; Errc::io.
  Result<void> collect();
  // Null: it is not among those. Valid until the next collect().
  const gpu::DeviceUpdate* find(const Bytes& payload) const;

  // On the device.
  std::size_t memory_bytes() const;

 private:
  struct Arrival {
    std::shared_ptr<const Bytes> payload;
    gpu::DeviceUpdate entries;
    gpu::DeviceCodec::Begun begun;
  };

  DeviceArrivals(std::unique_ptr<gpu::Gpu> stream, const ParamLayout& layout);
  Arrival spare();
  void give_up(std::vector<Arrival>& arrivals);

  std::unique_ptr<gpu::Gpu> stream_;  // outlives all that follows
  std::uint64_t entries_max_;         // that are begun, about; room that is kept is twice that
  std::uint64_t coming_entries_ = 0;
  gpu::DeviceCodec codec_;
  std::vector<Arrival> coming_, spare_;
  std::vector<Arrival> there_;  // ascending by where their payloads lie
};

}  // namespace rumor
