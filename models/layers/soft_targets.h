// SoftTargets: a distribution over the classes for each row, as a second target of the predictions beside the label.
//
//   loss += weight * mean over rows of  -sum_c probability[c] log p[c]
//
// so d loss / d logits gains weight * (p - probability) / rows. (Hinton, Vinyals, Dean 2015, "Distilling the knowledge
// in a neural network", at temperature 1.)
//
// Thread: a plain value; refers to memory of the caller.
#pragma once

#include <span>

namespace rumor::models {

struct SoftTargets {
  std::span<const float> probability;  // [rows, classes], each row with a sum of 1; empty: none
  float weight = 0;
};

}  // namespace rumor::models
