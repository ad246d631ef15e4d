// HiddenMatrix: a matrix between two layers of units, for optimizers that treat it as a matrix (Muon).
//
// A hidden matrix turns one vector of hidden values into another. The first and the last layer are none: their rows or
// columns belong to tokens, pixels or classes. A tensor may hold several side by side, as the query, key and value
// projections of a GPT.
//
// Thread: plain values.
#pragma once

#include <cstdint>
#include <vector>

namespace rumor::models {

class Model;

struct HiddenMatrix {
  std::uint32_t offset = 0;  // of its first element among all parameters
  std::uint32_t rows = 0, cols = 0;
  std::uint32_t stride = 0;  // from one row to the next; more than cols where others stand beside it

  bool operator==(const HiddenMatrix&) const = default;
};

// As Model::hidden_matrices() says, in the order of the parameters. Empty: the model has none.
std::vector<HiddenMatrix> hidden_matrices(const Model& model);

}  // namespace rumor::models
