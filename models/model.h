// Model: a loss and its gradient as pure functions of a flat parameter vector.
//
// Thread: one caller at a time per Model object (it owns its activations); parameters and gradients belong to
// the caller. Determinism: equal inputs give equal bits on every x86-64 and AArch64 machine, whatever the
// compiler, optimisation level or SIMD width (models/kernels.h says how).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/param_layout.h"
#include "runtime/base/result.h"

namespace rumor::models {

struct ModelConfig {
  std::string family = "mlp";
  std::vector<std::uint32_t> hidden = {128, 128};  // mlp
  // Language models:
  std::uint32_t context = 128;  // tokens of a row that the model sees at once
  std::uint32_t layers = 4, heads = 4, embedding = 128;
  // Filled from the data set (DataSet::describe):
  std::uint32_t inputs = 0;  // values of a row; pictures: channels * height * width, planes one after another
  std::uint32_t classes = 0;
  std::uint32_t channels = 0, height = 0, width = 0;  // of a picture; 0: the rows are none
  std::uint32_t vocabulary = 0;                       // of tokens; above 0 says that it is a language model
};

// Rows of examples. x: [rows, inputs] row-major, already normalised; label: [rows] in [0, classes).
// Of a language model: tokens, [rows, context + 1] row-major, each below the vocabulary; what is to be foretold
// after token t is token t + 1. x and label are empty then.
struct Batch {
  std::span<const float> x;
  std::span<const std::uint8_t> label;
  std::uint32_t rows = 0;
  std::span<const std::uint16_t> tokens = {};
};

struct Evaluation {
  double loss = 0;                 // mean cross-entropy in nats
  std::optional<double> accuracy;  // 0..1; absent for language models
};

class Model {
 public:
  virtual ~Model() = default;
  virtual const ParamLayout& layout() const = 0;
  // Mean loss over the batch; `gradient` is overwritten. Requires: params, gradient of layout().params()
  // floats.
  virtual float loss_and_gradient(std::span<const float> params, const Batch& batch,
                                  std::span<float> gradient) = 0;
  virtual Evaluation evaluate(std::span<const float> params, const Batch& batch) = 0;
};

// Errors: Errc::usage naming the known families.
Result<std::unique_ptr<Model>> make_model(const ModelConfig& config);

// Initial weights on the integer grid (value * 2^-grid_bits), from the seed, in integer arithmetic: equal
// everywhere.
// Weights of a layer with `cols` inputs: uniform in +-sqrt(6 / cols) (He et al. 2015), biases 0.
std::vector<std::int32_t> initial_weights(const ParamLayout& layout, std::uint64_t seed, int grid_bits);

}  // namespace rumor::models
