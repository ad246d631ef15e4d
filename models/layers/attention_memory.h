// AttentionMemory: the keys and values of the tokens that a decoder has read, so that one more token looks back at them
// at the cost of one row.
//
// Bits: those of models/layers/attention.h for the same tokens. Memory: 2 * context * groups * head_size floats.
// Thread: one caller at a time.
#pragma once

#include <vector>

#include "models/layers/attention.h"

namespace rumor::models {

class AttentionMemory {
 public:
  // Room for shape.context tokens; the batch does not matter.
  explicit AttentionMemory(Attention::Shape shape);

  // Reads the token at `place`. qkv: its row, [shape.row()] -> y: [shape.width()]. Requires: place < context, and all
  // places before it have been read.
  void look(long place, const float* qkv, float* y);

 private:
  void keep(long place, const float* qkv);

  Attention::Shape shape_;
  std::vector<float> keys_;    // [groups][head_size][context]
  std::vector<float> values_;  // [context][groups * head_size]
  std::vector<float> looks_;   // [context]
};

}  // namespace rumor::models
