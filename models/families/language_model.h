// LanguageModel: what all models of text have in common. They read rows of tokens, end in a vector for each token, and
// predict the next token with a table of token vectors (models/layers/embedding.h).
//
// A family gives forward() and backward() of all that lies below the head. Thread and bits as models/families/model.h.
#pragma once

#include <optional>

#include "models/families/model.h"
#include "models/layers/embedding.h"

namespace rumor::models {

class LanguageModel : public Model {
 public:
  LanguageModel(const LanguageModel&) = delete;
  LanguageModel& operator=(const LanguageModel&) = delete;

  const ParamLayout& layout() const override { return layout_; }
  // Batches have `tokens`, rows of context + 1.
  float loss_and_gradient(std::span<const float> params, const Batch& batch, std::span<float> gradient) override;
  // The loss alone. In pieces of a few rows, so a whole test set may be passed.
  Evaluation evaluate(std::span<const float> params, const Batch& batch) override;
  // Keeps all logits of the batch: pass few rows.
  void predict(std::span<const float> params, const Batch& batch, std::span<float> out) override;
  std::size_t predictions(std::uint32_t rows) const override {
    return std::size_t{rows} * static_cast<std::size_t>(sizes_.context * sizes_.vocabulary);
  }
  std::uint64_t multiply_adds(std::uint32_t rows) const override {
    return std::uint64_t{rows} * static_cast<std::uint64_t>(sizes_.context) * layout_.params();
  }
  void set_parallel(Parallel* parallel) override { parallel_ = parallel; }

 protected:
  struct Sizes {
    long vocabulary, context, width;
    std::uint32_t table;                              // offset of the head's table, [vocabulary, width]
    std::optional<std::uint32_t> bias = std::nullopt;  // offset of its bias, [vocabulary]
  };
  // The output of the last layer below the head, [rows of the batch, width]. Both arrays belong to the family.
  struct Top {
    const float* x;
    float* change;  // room for d loss / d x
  };

  LanguageModel(ParamLayout layout, Sizes sizes) : layout_(std::move(layout)), sizes_(sizes) {}

  // state: Batch::state of these rows, or null; null for a model without a state.
  virtual Top forward(const float* params, const TokenBatch& batch, const float* state) = 0;
  // Writes the state after the last forward(), [batch][state_floats()].
  virtual void keep_state(long, float*) {}
  // Backward pass of the last forward(). Top::change is filled in, and the gradient of the head is in place.
  // Overwrites all other gradients. Adds to a table that is the embedding's too.
  virtual void backward(const float* params, const TokenBatch& batch, float* gradient) = 0;

  std::size_t head_memory_bytes() const { return head_.memory_bytes(); }
  Parallel* parallel() const { return parallel_; }

 private:
  TokenBatch tokens_of(std::span<const float> params, const Batch& batch) const;
  TokenHead::Weights head_of(std::span<const float> params) const;

  ParamLayout layout_;
  Sizes sizes_;
  Parallel* parallel_ = nullptr;
  TokenHead head_;
};

}  // namespace rumor::models
