// ModelPart: consecutive units of a model. A stage of a pipeline trains one part, and a whole model is its
// only part.
//
// A model can be cut between its units:
//
//   mlp               its linear layers, each with the ReLU behind it
//   cnn               each convolution, with its norm, ReLU and pooling; in a residual network the stem and
//                     each block, with the pooling behind it; last the dense head, with the mean before it
//   lstm, gpt, llama  the layers; the embedding belongs to the first, the last norm and the head to the last
//
// Tensors of a part have the names that they have in the whole model, and so the same initial values. With an
// f32 border the gradient of a batch has the bits of the whole model's
// (tests/unit/models/families/part_test.cc).
//
// Thread: plain values and functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/result.h"

namespace rumor::models {

struct ModelConfig;

// Units begin, begin + 1, ... end - 1.
struct UnitRange {
  static constexpr std::uint32_t all = 0xffff'ffff;  // as `end`: to the last unit
  std::uint32_t begin = 0, end = all;
  bool operator==(const UnitRange&) const = default;
};

// A UnitRange of a model that has `units` of them.
struct ModelPart {
  std::uint32_t begin = 0, end = 0, units = 0;  // begin < end <= units

  bool is_first() const { return begin == 0; }
  bool is_last() const { return end == units; }
  bool is_whole() const { return is_first() && is_last(); }
  std::uint32_t size() const { return end - begin; }

  // Errors: Errc::usage for a range that is empty or beyond the units.
  static Result<ModelPart> create(UnitRange range, std::uint32_t units);
};

// The units that make_model(config) has in all; config.units does not matter. Errors: as make_model.
Result<std::uint32_t> unit_count(const ModelConfig& config);

// Cuts a model into `stages` parts, one after another. `cut`: the units of each part; empty: as even in
// computation (Model::multiply_adds) as possible, since the slowest stage sets the speed of all. All machines
// find the same cut. Errors: as unit_count; Errc::usage, naming the run file's key,
// for a cut that does not fit the model, and for a head that shares its table with the embedding, which would
// be in two parts.
Result<std::vector<UnitRange>> cut_model(const ModelConfig& config, std::uint32_t stages,
                                         std::span<const std::uint32_t> cut);

}  // namespace rumor::models
