// StageWorker: computes what a pipeline asks for (gossip/pipeline/work.h) with a part of a model: from border
// to border, and the sum of a step's gradients.
//
// A border is coded as compress/border has it. Labels are a byte for each row, or of a language model the
// tokens of each row, 4 bytes each. A source keeps the numbers of its rows for the backward pass. Everything
// that comes from a neighbour is checked here before a model sees it.
//
// The model holds the activations of the last forward pass alone. If another one came between, backward() of
// a micro-batch computes its forward pass again.
//
// Bits: with f32 borders the gradient of a micro-batch has the bits of the whole model's. An LSTM begins each
// row with zeros, since its state would have to follow the rows of a text from replica to replica.
//
// Thread: one owner. Memory: the model's, the sum and one gradient, and one border in floats on either side.
#pragma once

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
  std::uint32_t rows = 1;  // of a micro-batch; equal for all peers of a pipeline
};

class StageWorker {
 public:
  // `config` has the units of the stage, and what the data say of inputs and classes (DataSet::describe).
  // `sampler` draws `rows` rows at a time from `data`; both are only for the first stage. Errors: those of
  // models::make_model().
  static Result<StageWorker> create(const models::ModelConfig& config, StageOptions options,
                                    std::shared_ptr<const models::DataSet> data,
                                    std::optional<models::BatchSampler> sampler);

  const models::Model& model() const { return *model_; }
  models::Model& model() { return *model_; }

  // The weights are others from now on.
  void begin_step() { forwarded_.reset(); }
  // weights: [layout().params()], the same ones until begin_step(). Errors: Errc::corrupt, if the bytes of a
  // neighbour are not what these rows have; nothing has happened then.
  Result<gossip::Made> make(const gossip::Work& work, std::span<const float> weights);
  // The sum of the gradients since Work::begins_sum, over their number. Requires: as many floats as weights.
  void mean_gradient(std::uint32_t micro_batches, std::span<float> out) const;

  // Forward passes so far, those that were made again included.
  std::uint64_t forward_passes() const { return forward_passes_; }

  std::size_t memory_bytes() const;

 private:
  StageWorker(std::unique_ptr<models::Model> model, const models::ModelConfig& config, StageOptions options,
              std::shared_ptr<const models::DataSet> data, std::optional<models::BatchSampler> sampler);

  // The rows of a micro-batch as the part sees them.
  struct Rows {
    models::Batch batch;
    std::span<const float> below;
  };
  // Names the last forward pass.
  struct Forwarded {
    gossip::MicroBatchName name;
    std::shared_ptr<const Bytes> below;
    bool operator==(const Forwarded&) const = default;
  };

  bool is_first() const { return model_->part().is_first(); }
  std::size_t label_bytes() const;
  Result<Rows> rows_of(const gossip::Work& work);
  Result<void> read_labels(BytesView labels, models::Batch& batch);
  Bytes labels_of(const models::Batch& batch) const;
  Result<gossip::Made> emit(const gossip::Work& work, std::span<const float> weights);
  Result<gossip::Made> forward(const gossip::Work& work, std::span<const float> weights);
  Result<gossip::Made> backward(const gossip::Work& work, std::span<const float> weights);
  Bytes go_forward(const Rows& rows, std::span<const float> weights, Bytes labels);
  void ensure_forward(const gossip::Work& work, const Rows& rows, std::span<const float> weights);

  std::unique_ptr<models::Model> model_;
  StageOptions options_;
  std::uint32_t classes_ = 0, vocabulary_ = 0, context_ = 0;
  std::shared_ptr<const models::DataSet> data_;
  std::optional<models::BatchSampler> sampler_;
  std::optional<Forwarded> forwarded_;
  std::uint64_t forward_passes_ = 0;
  models::BatchMemory memory_;
  LargeVector<float> below_, above_, below_change_, above_change_;  // borders of the micro-batch under way
  LargeVector<float> sum_, gradient_;
};

}  // namespace rumor
