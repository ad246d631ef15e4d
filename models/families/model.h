// Model: a loss and its gradient as pure functions of a flat parameter vector. Or a part of a model, with
// neighbours below and above (models/families/part.h).
//
// Thread: one caller at a time per Model object (it owns its activations); parameters and gradients belong to
// the caller. Determinism: equal inputs give equal bits on every x86-64 and AArch64 machine, whatever the
// compiler, optimisation level or SIMD width (models/kernels/kernels.h says how).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/families/part.h"
#include "models/layers/rotary.h"
#include "models/layers/soft_targets.h"
#include "models/layers/token_batch.h"
#include "runtime/base/large_vector.h"
#include "runtime/base/parallel.h"
#include "runtime/base/param_layout.h"
#include "runtime/base/result.h"

namespace rumor::models {

class Adapters;
struct FrozenBase;

// Low-rank adapters of a frozen model (models/families/adapters.h).
struct AdapterConfig {
  std::string kind = "none";         // or lora
  std::uint32_t rank = 8;
  double alpha = 8;
  std::vector<std::string> targets;  // names of projections, or their ends, as in PEFT; empty: as usual in the family
  std::shared_ptr<const FrozenBase> base;  // the frozen weights; null until they were read
  std::string start;  // folder of adapters to begin with (models/weights/start_adapters.h); empty: as the seed says

  bool is_on() const { return kind != "none"; }
};

// An exit: a small head of its own on the values of a part's upper border, which classifies as the end of the model
// does (Teerapittayanon, McDanel, Kung 2017, "Distributed Deep Neural Networks over the Cloud, the Edge and End
// Devices"). A dense layer; where the border has pictures, on the means of up to 4 x 4 cells of each channel. Its
// tensors exit.S.weight [classes, inputs] and exit.S.bias [classes], S being `stage`, are the last of the part.
struct ExitConfig {
  std::uint32_t stage = 0;  // counted from 1; 0: no exit
  double weight = 0;        // of the exit's loss in the sum that is trained; above 0

  bool is_on() const { return stage > 0; }
};

struct ModelConfig {
  std::string family = "mlp";
  // mlp; cnn: of the dense head; lstm: the width of each layer, all equal.
  std::vector<std::uint32_t> hidden = {128, 128};
  // Convolutional networks (models/families/cnn_plan.h):
  std::vector<std::uint32_t> stage_channels = {32, 64};  // of each convolution, or stage of blocks; in files: channels
  std::uint32_t blocks = 0;                              // residual blocks a stage; 0: a plain network
  std::uint32_t pool_every = 1;                          // convolutions between two poolings; plain networks
  std::uint32_t groups = 0;                              // of GroupNorm after each convolution; 0: none
  // Sides of the square pictures that it trains on, ascending, the last one `height`; empty: `height` alone.
  std::vector<std::uint32_t> sizes;
  // Language models:
  std::uint32_t context = 128;          // tokens of a row that the model sees at once
  std::uint32_t positions = 0;          // tokens that a Llama's weights were made for, if more; for its config.json
  std::uint32_t layers = 4, heads = 4;  // gpt, llama
  std::uint32_t embedding = 128;
  // Llama (models/families/llama.h); 0: as usual.
  std::uint32_t kv_heads = 0;      // groups of heads with keys and values in common; usual: heads
  std::uint32_t head_size = 0;     // usual: embedding / heads
  std::uint32_t feed_forward = 0;  // width of the feed-forward part; usual: 8/3 of the embedding
  double rope_base = 10'000;       // of the rotary positions
  RotaryScaling rope_scaling;
  double norm_epsilon = 1e-5;      // added to the mean square
  bool tied_head = true;           // gpt, llama: the head is the embedding's table
  bool qkv_bias = false;           // queries, keys and values have biases, as Qwen2's
  AdapterConfig adapter;           // gpt, llama
  // Filled from the data set (DataSet::describe):
  std::uint32_t inputs = 0;  // values of a row; pictures: channels * height * width, planes one after another
  std::uint32_t classes = 0;
  std::uint32_t channels = 0, height = 0, width = 0;  // of a picture; 0: the rows are none
  std::uint32_t vocabulary = 0;                       // of tokens; above 0 says that it is a language model
  UnitRange units;                                    // the part of the model to make
  ExitConfig exit;                                    // of this part
};

// Rows of examples. x: [rows, inputs] row-major, already normalised; label: [rows] in [0, classes). Pictures may have
// any of ModelConfig::sizes instead: x says which.
// For a language model: tokens, [rows, context + 1] row-major, each below the vocabulary. Token t + 1 is the target
// after token t. x and label are then empty.
struct Batch {
  std::span<const float> x;
  std::span<const std::uint8_t> label;
  std::uint32_t rows = 0;
  std::span<const Token> tokens = {};
  SoftTargets soft = {};  // of a language model: a row for each token predicted, over the vocabulary
  // Of a model with a state, [rows, state_floats()]: that before each row; loss_and_gradient() leaves that after it.
  // Empty: every row begins with zeros. Memory of the caller (models/data/lanes.h).
  std::span<float> state = {};
};

// Values that a part exchanges with its neighbours, [rows of the batch, floats of the border]. Empty at the
// ends of the model: the first part reads the batch instead, and the last one ends in the loss.
struct BorderFloats {
  std::size_t below = 0, above = 0;  // of one row
  bool operator==(const BorderFloats&) const = default;
};

struct Evaluation {
  double loss = 0;                 // mean cross-entropy in nats
  std::optional<double> accuracy;  // 0..1; absent for language models
};

// How the values of one tensor begin. Spread is given as a variance, a fraction of whole numbers.
struct TensorStart {
  enum class Kind : std::uint8_t {
    zero,
    one,
    uniform,  // in +-sqrt(3 * variance)
    normal,   // sums of twelve uniform numbers: within six deviations
  };
  Kind kind = Kind::zero;
  std::uint32_t variance_over = 0, variance_under = 1;  // over <= 5, so that 64 bits suffice; under >= 1

  // Uniform in +-sqrt(6 / cols) (He et al. 2015) for tensors of two or more dimensions, zero for vectors.
  static TensorStart by_inputs(const TensorInfo& tensor);
};

class Model {
 public:
  virtual ~Model() = default;
  virtual const ParamLayout& layout() const = 0;
  // How a tensor of layout() begins: weights by their inputs and biases at zero, unless the family says
  // otherwise.
  virtual TensorStart start_of(const TensorInfo& tensor) const { return TensorStart::by_inputs(tensor); }
  // The part of a model that this is; by default the whole of a model with one unit.
  virtual ModelPart part() const { return {0, 1, 1}; }
  virtual BorderFloats border_floats() const { return {}; }
  // How many hidden matrices a tensor of layout() holds side by side (models/optimizers/hidden_matrices.h).
  // Unless the family says otherwise: 1 for tensors of two or more dimensions but the first and the last of
  // the whole model.
  virtual std::uint32_t hidden_matrices(const TensorInfo& tensor) const;

  // A step is forward(), then backward() with the same arguments; a call in between on the same object spoils
  // it. The first part reads x or tokens of the batch, the last one label, tokens and soft; every part its
  // rows and state. backward() of a part with an exit reads label as well, and adds the gradient of the exit's
  // loss, times its weight, to above_change before it goes on down.
  //
  // `above` is overwritten.
  virtual void forward(std::span<const float> params, const Batch& batch, std::span<const float> below,
                       std::span<float> above) = 0;
  // above_change: d mean loss of the batch / d above. `gradient` and below_change, d mean loss / d below, are
  // overwritten. The result is the mean loss in the last part, 0 in the others.
  virtual float backward(std::span<const float> params, const Batch& batch, std::span<const float> below,
                         std::span<const float> above_change, std::span<float> gradient,
                         std::span<float> below_change) = 0;

  // The whole model, which is the chain of its one part: mean loss over the batch; `gradient` is overwritten.
  // Requires: params, gradient of layout().params() floats.
  float loss_and_gradient(std::span<const float> params, const Batch& batch, std::span<float> gradient) {
    forward(params, batch, {}, {});
    return backward(params, batch, {}, {}, gradient, {});
  }
  // Requires, as predict(): the whole model.
  virtual Evaluation evaluate(std::span<const float> params, const Batch& batch) = 0;
  // The probability of each class; of a language model, of each token at each place. SoftTargets use these.
  // `out`: [predictions(rows)], overwritten.
  virtual void predict(std::span<const float> params, const Batch& batch, std::span<float> out) = 0;
  virtual std::size_t predictions(std::uint32_t rows) const = 0;
  // Classes of the exit of this part (ModelConfig::exit), or of the head of the last part; 0: there is neither, or the
  // model does not classify.
  virtual std::uint32_t exit_classes() const { return 0; }
  // The probability of each class there, for the rows of the last forward(): [rows, exit_classes()], overwritten.
  // Requires: exit_classes() > 0.
  virtual void predict_exit(std::span<float> out);
  // Floats of the state that a row leaves to the row after it (Batch::state); 0: rows are independent.
  virtual std::size_t state_floats() const { return 0; }
  // Writes the state after each row of the last evaluate() or predict(), which leave that of the batch as it was. [rows
  // of that batch, state_floats()]. Requires: state_floats() > 0.
  virtual void state_after(std::span<float> state) const;
  // Approximate count for a forward pass over `rows` rows. It decides how many threads are worth having.
  virtual std::uint64_t multiply_adds(std::uint32_t rows) const {
    return std::uint64_t{rows} * layout().params();
  }
  // The same for pictures of one of ModelConfig::sizes.
  virtual std::uint64_t multiply_adds_at(std::uint32_t rows, std::uint32_t /*size*/) const {
    return multiply_adds(rows);
  }
  // Freezes the model: from now on these adapters take part in forward() and backward(), and backward() is given an
  // empty gradient. They must outlive the model's use. Families without adapters do nothing.
  virtual void adapt(Adapters&) {}
  // Memory that the model holds now: activations and scratch, no parameters.
  virtual std::size_t memory_bytes() const = 0;
  // Threads for a step; null: the caller's alone. Must outlive its use. The bits are the same for any number.
  virtual void set_parallel(Parallel*) {}

 protected:
  // Checks the sizes of what backward() was given.
  void check_backward(std::uint32_t rows, std::span<const float> above_change, std::span<const float> gradient,
                      std::span<const float> below_change) const;
};

// Errors: Errc::usage naming the known families.
Result<std::unique_ptr<Model>> make_model(const ModelConfig& config);
// With config.exit: that part with its exit behind it (exited_model.cc). Errors also: Errc::usage for a model that does
// not classify, and for the last part, which ends in the head.
Result<std::unique_ptr<Model>> make_exited_model(const ModelConfig& config);

// The parameters of a part in front of those of its exit.
std::uint32_t params_without_exit(const ParamLayout& layout);

// Initial weights on the integer grid (value * 2^-grid_bits), from the seed, in integer arithmetic: equal
// everywhere. A tensor's values depend on the seed, its name and how it begins, not on its neighbours.
LargeVector<std::int32_t> initial_weights(const Model& model, std::uint64_t seed, int grid_bits);
// The same for a layout without a model: every tensor by_inputs().
LargeVector<std::int32_t> initial_weights(const ParamLayout& layout, std::uint64_t seed, int grid_bits);

// From the grid back: floats[i] = weights[i] * 2^-grid_bits. Requires: as many floats as weights.
void to_floats(std::span<const std::int32_t> weights, int grid_bits, std::span<float> floats);
std::vector<float> to_floats(std::span<const std::int32_t> weights, int grid_bits);

}  // namespace rumor::models
