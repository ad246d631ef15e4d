// ByteBudget: the number of entries that an update may have when the budget is in bytes.
//
// The number follows from the payload bits per entry in the last updates, corrected for the growth of these bits when
// entries get rarer (one bit more per entry for half as many). The plan exceeds the budget slightly, and
// encode_within() cuts it. No payload is ever larger than the budget, unless one entry alone is.
//
//   bytes per update   the budget is the same for each update; payloads are 96 to 100 % of it
//   bytes per second   unused bytes are saved up, at most four updates' worth, so that the mean over time is the rate:
//                      within 3 %, or less if the budget of an update is below the cost of one entry. The count is of
//                      this peer's own updates on one link, once, without updates of others that it forwards
//
// No clock here: the caller passes the time since the last update. Thread: one owner.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compress/select/compressor.h"
#include "compress/select/range_guard.h"

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
  // The most bytes that the payload of the update just planned may have.
  std::uint64_t bytes_max() const;
  // Reports the size of the update that was sent.
  void sent(std::uint64_t entries, std::uint64_t payload_bytes);

 private:
  double bits_per_entry(double entries) const;

  double params_;
  Limits limits_;
  double saved_ = 0;         // bytes, for the coming update
  double seconds_mean_ = 0;  // between updates
  double bits_ = 0, at_ = 0;  // an entry took bits_ when there were at_ of them; 0: not known
};

// The entries chosen for an update, wherever they are.
class ChosenEntries {
 public:
  virtual ~ChosenEntries() = default;
  virtual std::uint64_t count() const = 0;
  // Returns the canonical payload.
  virtual Result<Bytes> encode() = 0;
  // Only the `entries` largest stay chosen; the others wait in the residual again. Requires: 1 <= entries <= count().
  virtual Result<void> shrink(std::uint32_t entries) = 0;
  // The positions that a guard has found so far, after encode().
  virtual const std::vector<std::uint32_t>& left_out() const = 0;
};

// Turns the entries that a compressor chose into those of an update.
struct EntryRules {
  std::int64_t peers = 1;     // an entry moves its weight by this part of what leaves the residual, at least one unit
  std::optional<RangeGuard> guard = {};  // entries that it finds wait in the residual
};

// The last update of a compressor. Requires: `update` is what the last absorb() gave, unchanged; it becomes what is
// sent.
class CompressorEntries : public ChosenEntries {
 public:
  // Refers to everything but options and rules.
  CompressorEntries(Compressor& compressor, const ParamLayout& layout, SparseUpdate& update, CodecOptions options,
                    EntryRules rules = {});
  std::uint64_t count() const override { return update_.index.size(); }
  Result<Bytes> encode() override { return compress::encode(layout_, update_, options_); }
  Result<void> shrink(std::uint32_t entries) override;
  const std::vector<std::uint32_t>& left_out() const override { return left_out_; }

 private:
  void keep_in_range();
  void share();

  Compressor& compressor_;
  const ParamLayout& layout_;
  SparseUpdate& update_;
  CodecOptions options_;
  EntryRules rules_;
  std::vector<std::uint32_t> left_out_;
};

// Returns the payload with as many of the chosen entries as fit into bytes_max, and at least one. Errors: those of
// `chosen`.
Result<Bytes> encode_within(ChosenEntries& chosen, std::uint64_t bytes_max);
// The same for CompressorEntries, which have no errors.
Bytes encode_within(Compressor& compressor, const ParamLayout& layout, SparseUpdate& update,
                    std::uint64_t bytes_max, const CodecOptions& options = {});

}  // namespace rumor::compress
