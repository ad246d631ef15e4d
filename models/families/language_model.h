// LanguageModel: what all models of text have in common. They read rows of tokens, end in a vector for each
// token, and predict the next token with a table of token vectors (models/layers/embedding.h).
//
// A family gives run() and run_back() of all that lies below the head. Units of a part
// (models/families/part.h) are the layers; a border has what a layer gives to the next one, [rows of the
// batch][context][width]. Thread and bits as models/families/model.h.
#pragma once

#include <optional>
#include <vector>

#include "models/families/model.h"
#include "models/layers/embedding.h"
#include "runtime/base/memory_bytes.h"

namespace rumor::models {

class LanguageModel : public Model {
 public:
  LanguageModel(const LanguageModel&) = delete;
  LanguageModel& operator=(const LanguageModel&) = delete;

  const ParamLayout& layout() const override { return layout_; }
  ModelPart part() const override { return sizes_.part; }
  BorderFloats border_floats() const override;
  // Batches have `tokens`, rows of context + 1: in the first part for all but the last token of a row, in the
  // last part for all but the first.
  void forward(std::span<const float> params, const Batch& batch, std::span<const float> below,
               std::span<float> above) override;
  float backward(std::span<const float> params, const Batch& batch, std::span<const float> below,
                 std::span<const float> above_change, std::span<float> gradient,
                 std::span<float> below_change) override;
  // The loss alone. In pieces of a few rows, so a whole test set may be passed.
  Evaluation evaluate(std::span<const float> params, const Batch& batch) override;
  void state_after(std::span<float> state) const override;
  // Keeps all logits of the batch: pass few rows.
  void predict(std::span<const float> params, const Batch& batch, std::span<float> out) override;
  std::size_t predictions(std::uint32_t rows) const override {
    return std::size_t{rows} * static_cast<std::size_t>(sizes_.context * sizes_.vocabulary);
  }
  std::uint64_t multiply_adds(std::uint32_t rows) const override {
    return std::uint64_t{rows} * static_cast<std::uint64_t>(sizes_.context) * (layout_.params() - looked_up());
  }
  void set_parallel(Parallel* parallel) override { parallel_ = parallel; }

 protected:
  // Where a gradient goes; null in a frozen model.
  static float* place(float* gradient, std::uint32_t offset) {
    return gradient == nullptr ? nullptr : gradient + offset;
  }

  struct Sizes {
    long vocabulary, context, width;  // width: of a token's vector between layers, and below the head
    ModelPart part;
    std::uint32_t table;                              // offset of the head's table, [vocabulary, width]
    std::optional<std::uint32_t> bias = std::nullopt;  // offset of its bias, [vocabulary]
  };
  // The output of the layers, [rows of the batch, width]: in the last part what the head reads, in the others
  // what goes to the border. Both arrays belong to the family.
  struct Top {
    const float* x;
    float* change;  // room for d loss / d x
  };

  LanguageModel(ParamLayout layout, Sizes sizes) : layout_(std::move(layout)), sizes_(sizes) {}

  // Parameters of a table of token vectors that are copied, not multiplied: that of the embedding, unless the head uses
  // it too.
  std::uint64_t looked_up() const {
    const TensorInfo& first = layout_.tensors().front();
    const bool is_head = sizes_.part.is_last() && sizes_.table == first.offset;
    return sizes_.part.is_first() && !is_head ? first.size : 0;
  }

  // below: of the border, [rows of the batch, width], or null in the first part. state: Batch::state of these
  // rows, or null; null for a model without a state.
  virtual Top run(const float* params, const TokenBatch& batch, const float* below, const float* state) = 0;
  // Writes the state after the last run(), [batch][state_floats()].
  virtual void keep_state(long, float*) {}
  // Backward pass of the last run() with the same arguments. Top::change is filled in, and in the last part
  // the gradient of the head is in place. Overwrites all other gradients, and below_change unless it is null.
  // Adds to a table that is the embedding's too. gradient: null in a frozen model.
  virtual void run_back(const float* params, const TokenBatch& batch, const float* below, float* gradient,
                        float* below_change) = 0;

  // Memory of the head, and of the states that evaluate() and predict() leave.
  std::size_t own_memory_bytes() const { return head_.memory_bytes() + capacity_bytes(after_); }
  Parallel* parallel() const { return parallel_; }
  // Null unless the model is frozen. A family that has adapters lets adapt() set them.
  Adapters* adapters() const { return adapters_; }
  void freeze(Adapters& adapters) { adapters_ = &adapters; }

 private:
  TokenBatch tokens_of(std::span<const float> params, const Batch& batch) const;
  TokenHead::Weights head_of(std::span<const float> params) const;

  ParamLayout layout_;
  Sizes sizes_;
  Top top_{};  // of the last forward()
  Parallel* parallel_ = nullptr;
  Adapters* adapters_ = nullptr;
  TokenHead head_;
  std::vector<float> after_;  // of state_after()
};

}  // namespace rumor::models
