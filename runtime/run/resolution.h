// Resolution: the sizes of the pictures that a run learns from, from small to whole: data.resolution of a run file
// (models/README.md, "Pictures from low to full resolution").
//
// Thread: plain values.
#pragma once

#include <cstdint>
#include <vector>

namespace rumor {

struct Resolution {
  struct Phase {
    double share = 0;         // of run.samples, from which the phase lasts until the next one
    std::uint32_t pixels = 0;  // of a side
    bool operator==(const Phase&) const = default;
  };
  std::vector<Phase> phases;  // shares ascending from 0, pixels ascending; empty: whole pictures always

  bool is_on() const { return !phases.empty(); }
  // Pixels a side at `progress` in [0, 1] of the run; 0: whole pictures, as there are no phases.
  std::uint32_t size_at(double progress) const {
    std::uint32_t pixels = 0;
    for (const Phase& phase : phases)
      if (phase.share <= progress) pixels = phase.pixels;
    return pixels;
  }
  // The pixels of all phases.
  std::vector<std::uint32_t> sizes() const {
    std::vector<std::uint32_t> list;
    for (const Phase& phase : phases) list.push_back(phase.pixels);
    return list;
  }
  bool operator==(const Resolution&) const = default;
};

}  // namespace rumor
