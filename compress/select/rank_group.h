// RankGroup: the parameters that are ranked together (all of them, or one tensor), and the guess of their next
// threshold from the last.
//
// Thread: one owner.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "compress/select/magnitudes.h"
#include "compress/select/scan_pass.h"
#include "runtime/base/param_layout.h"
#include "runtime/base/result.h"

namespace rumor::compress {

// Candidates are those above this share of the last threshold. Residuals pile up just below it, so a percent of the
// share may double them: it is adapted until there are some more than the k wanted, few to look at. How many more
// depends on how often it was too few: one time too many costs a second look at the residual, so each makes the
// margin twice as cautious, and that wears off over about fifty updates.
class Margin {
 public:
  double share() const { return share_; }
  // After too few: where to look again.
  double wider_share() const;
  // After a pass that found so many candidates and had room for `room` (any more: too many).
  void adapt(std::size_t candidates, std::size_t wanted, std::size_t room);

 private:
  void widen(double factor);
  double share_ = 0.95, caution_ = 2;
};

struct RankGroup {
  std::uint32_t size = 0;
  std::size_t first_piece = 0, piece_count = 0;

  std::uint32_t wanted = 0;   // entries, of this update
  std::int64_t owed = 0;      // share_entries
  // Entries that were left out since the last pass. They will be among the largest in the next one again, so that looks
  // for `extra` more, which are left out in turn: they take no places of others.
  std::uint32_t left_out = 0, extra = 0;
  std::uint32_t cutoff = 0;   // magnitude bits from which candidates were collected
  std::size_t candidates = 0;
  std::size_t selected = 0;
  std::uint32_t threshold = 0;  // magnitude bits, of the last update that had entries here; 0: unknown
  std::int32_t step_units = 0;
  float step = 0;
  Margin margin;

  bool binned() const { return wanted >= binned_entries_min; }
  // Magnitude bits from which to collect. Without a last threshold nothing is worth collecting: an infinite cutoff
  // makes the pass a plain addition.
  std::uint32_t share_of_threshold(double share, std::uint32_t floor_bits) const;
  std::size_t found = 0;  // by the pass under way, see Room

  // Candidates there may be: all of a small group, which is looked at whole. More would mean that the guess was
  // far off, or that very many changes are equal. A sixteenth of the group is half a byte a parameter.
  std::size_t room() const {
    return wanted + std::min(std::size_t{5} * wanted, std::size_t{size / 16}) + histogram_params_min;
  }
  // After a pass: counts, and says whether the candidates hold the `wanted` largest.
  enum class Collected : std::uint8_t { enough, too_few, too_many };
  Collected collected(std::span<const Piece> pieces, std::uint32_t floor_bits);
  void forget() { threshold = 0; }
  // Before a pass, after share_entries(): wants the extra entries too.
  void want_extra();
  // `count` of the chosen entries have been left out: that many of the extra ones are no longer wanted.
  void leave_out(std::uint32_t count);

  // Sets the size of an entry to `worth`, in weight units, rounded to the grid. `worth` is a float before rounding, so
  // the rounded value is a float too and leaves the residual without another rounding. Errors: Errc::limit, beyond the
  // grid. Requires: worth at least half a grid unit.
  Result<void> set_step(float worth, int grid_bits);
};

// Why a residual that is no finite number at `position` of the flat vector cannot be sent. Errc::limit.
Error not_finite_at(const ParamLayout& layout, std::uint32_t position);

// Candidates of all pieces.
std::size_t count_candidates(std::span<const Piece> pieces);

// Distributes `entries` by size: exactly that many in all, and no group gets more than it has parameters. The fraction
// that a group misses is remembered, so that over several updates each group gets its share.
// Requires: the sizes sum up to `params`, entries <= params.
void share_entries(std::span<RankGroup> groups, std::uint32_t entries, std::uint32_t params);

}  // namespace rumor::compress
