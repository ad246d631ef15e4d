// ByteBudget: how many entries an update may have when the budget is in bytes.
//
// The number of entries follows from the payload bits an entry took in the last updates, corrected for how bits
// grow as entries get rarer (one bit more an entry for half as many). A little more is planned than fits, and
// encode_within() cuts it: no payload is ever larger than the budget, unless one entry alone is.
//
//   bytes per update   the budget is the same for each; payloads are 96 to 100 % of it
//   bytes per second   what is not spent is saved up, at most four updates' worth, so that the mean over time is
//                      the rate: within 3 %, less where the budget of an update is below what one entry costs.
//                      Counted is what this peer's updates put on one link, once; updates that others sent and this
//                      peer passes on are not its own
//
// No clock here: the caller says how long ago the last update was. Thread: one owner.
#pragma once

#include <cstdint>

#include "compress/select/compressor.h"

namespace rumor::compress {

class ByteBudget {
 public:
  // One of the two is above 0.
  struct Limits {
    double bytes_per_update = 0;
    double bytes_per_second = 0;
  };
  // Requires: params >= 1 and exactly one limit.
  ByteBudget(std::uint32_t params, Limits limits);

  // Entries of the coming update, 1 to a fifth of the parameters (more is not worth a position each). `seconds`:
  // since the last one; 0 where there was none, which is then planned as if it might spend nothing.
  std::uint32_t plan(double seconds);
  // What the payload of the update just planned may have.
  std::uint64_t bytes_max() const;
  // What came of it.
  void sent(std::uint64_t entries, std::uint64_t payload_bytes);

 private:
  double bits_per_entry(double entries) const;

  double params_;
  Limits limits_;
  double saved_ = 0;         // bytes, for the coming update
  double seconds_mean_ = 0;  // between updates
  double bits_ = 0, at_ = 0;  // an entry took bits_ when there were at_ of them; 0: not known
};

// How many of so many entries, whose payload takes `bytes`, to try next so that it takes at most bytes_max: 1 to
// entries - 1. Requires: entries > 1, bytes > bytes_max.
std::uint32_t fitting_entries(std::uint64_t entries, std::uint64_t bytes_max, std::uint64_t bytes);

// The canonical payload of the last update of `compressor`, with as many of its entries as fit into bytes_max; at
// least one. `update` becomes what is in the payload.
// Requires: update is what the last absorb() gave, unchanged.
Bytes encode_within(Compressor& compressor, const ParamLayout& layout, SparseUpdate& update,
                    std::uint64_t bytes_max, const CodecOptions& options = {});

}  // namespace rumor::compress
