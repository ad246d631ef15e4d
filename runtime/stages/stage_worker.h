// StageWorker: computes what a pipeline asks for (gossip/pipeline/work.h) with a part of a model: from border
// to border, and the sum of a step's gradients.
//
// A border is coded as compress/border has it. Labels are a byte for each row, or of a language model the
// tokens of each row, 4 bytes each. A source keeps the numbers of its rows for the backward pass. Everything
// that comes from a neighbour is checked here before a model sees it.
//
// A model holds the activations of one forward pass. So there is a model for each micro-batch that awaits its
// gradient, up to StageOptions::passes; the oldest gives way, and its forward pass is computed again before
// its backward pass. Models have no weights, so activations are all that more of them cost.
//
// Bits: with f32 borders the gradient of a micro-batch has the bits of the whole model's. An LSTM begins each
// row with zeros, since its state would have to follow the rows of a text from replica to replica.
//
// Micro-batches that are ahead of a step (gossip/pipeline/work.h) have a sum of their own, and the weights of
// the step that they began in: a copy, while there are any.
//
// Thread: one owner. Memory: the models', one or two sums, one gradient, a copy of the weights for those
// ahead, and one border in floats on either side.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "compress/border/border_codec.h"
#include "gossip/pipeline/work.h"
#include "models/data/dataset.h"
#include "models/families/model.h"
#include "runtime/base/large_vector.h"

namespace rumor {

struct StageOptions {
  compress::BorderNumbers numbers = compress::BorderNumbers::f32;
  std::uint32_t rows = 1;    // of a micro-batch; equal for all peers of a pipeline
  std::uint32_t passes = 1;  // micro-batches whose activations are kept at once; >= 1
};

class StageWorker {
 public:
  // `config` has the units of the stage, and what the data say of inputs and classes (DataSet::describe).
  // `sampler` draws `rows` rows at a time from `data`; both are only for the first stage. Errors: those of
  // models::make_model().
  static Result<StageWorker> create(const models::ModelConfig& config, StageOptions options,
                                    std::shared_ptr<const models::DataSet> data,
                                    std::optional<models::BatchSampler> sampler);

  const models::Model& model() const { return *passes_.front().model; }
  models::Model& model() { return *passes_.front().model; }

  // weights: [layout().params()], the same ones until complete_step(). Errors: Errc::corrupt, if the bytes of
  // a neighbour are not what these rows have; nothing has happened then.
  Result<gossip::Made> make(const gossip::Work& work, std::span<const float> weights);
  // The step is complete, and the weights are others from now on. out: [layout().params()], the sum of its
  // gradients over their number. `weights`: those of make(), for the micro-batches that are ahead.
  void complete_step(const gossip::MakeStep& step, std::span<const float> weights, std::span<float> out);

  // Forward passes so far, those that were made again included.
  std::uint64_t forward_passes() const { return forward_passes_; }

  std::size_t memory_bytes() const;

 private:
  StageWorker(std::unique_ptr<models::Model> model, models::ModelConfig config, StageOptions options,
              std::shared_ptr<const models::DataSet> data, std::optional<models::BatchSampler> sampler);

  // The rows of a micro-batch as the part sees them.
  struct Rows {
    models::Batch batch;
    std::span<const float> below;
  };
  // Names a forward pass.
  struct Forwarded {
    gossip::MicroBatchName name;
    std::shared_ptr<const Bytes> below;
    bool operator==(const Forwarded&) const = default;
  };
  struct Pass {
    std::unique_ptr<models::Model> model;
    std::optional<Forwarded> of = {};  // whose activations the model has; none: it is free
    std::uint64_t number = 0;          // of forward_passes()
  };

  bool is_first() const { return model().part().is_first(); }
  std::size_t label_bytes() const;
  Result<Rows> rows_of(const gossip::Work& work);
  Result<void> read_labels(BytesView labels, models::Batch& batch);
  Bytes labels_of(const models::Batch& batch) const;
  Result<gossip::Made> emit(const gossip::Work& work, std::span<const float> weights);
  Result<gossip::Made> forward(const gossip::Work& work, std::span<const float> weights);
  Result<gossip::Made> backward(const gossip::Work& work, std::span<const float> weights);
  Forwarded forward_of(const gossip::Work& work) const;
  Pass& free_pass();
  Pass& go_forward(const gossip::Work& work, const Rows& rows, std::span<const float> weights);
  Pass& ensure_forward(const gossip::Work& work, const Rows& rows, std::span<const float> weights);
  void add_border(Bytes& bytes) const;

  models::ModelConfig config_;
  std::vector<Pass> passes_;
  StageOptions options_;
  std::uint32_t classes_ = 0, vocabulary_ = 0, context_ = 0;
  std::shared_ptr<const models::DataSet> data_;
  std::optional<models::BatchSampler> sampler_;
  std::uint64_t forward_passes_ = 0;
  models::BatchMemory memory_;
  LargeVector<float> below_, above_, below_change_, above_change_;  // borders of the micro-batch under way
  std::array<LargeVector<float>, 2> sums_;  // the second is empty until a micro-batch is ahead
  std::size_t current_ = 0;                 // the sum of the step under way
  LargeVector<float> gradient_, stashed_weights_;
};

}  // namespace rumor
