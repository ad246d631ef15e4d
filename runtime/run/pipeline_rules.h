// Settings of a model that is cut into stages: [pipeline] of a run file (gossip/PIPELINE.md). All peers of a run need
// the same, but for `overlap` and `recompute`.
//
// Thread: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rumor {

struct PipelineRules {
  std::uint32_t stages = 1;         // 1: the model is not cut, and the others are not used
  std::vector<std::uint32_t> cut;   // units of each stage (models/families/part.h); empty: as even as possible
  std::uint32_t micro_batches = 4;  // of a step; divides optimizer.batch
  // The weight in the trained sum of the loss of the exit at the end of each stage but the last (models::ExitConfig);
  // empty: no exits.
  std::vector<double> exits;
  bool overlap = false;    // begins the next step's micro-batches while those of a step are awaited
  bool recompute = false;  // keeps the activations of one micro-batch only, and computes the others again
  std::string border = "f32";       // how activations travel (compress/border/border_codec.h): f32, bf16 or int8
};

}  // namespace rumor
