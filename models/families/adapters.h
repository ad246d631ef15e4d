// Adapters: a frozen model is fine-tuned through a product of two small matrices beside each chosen projection. LoRA:
// Hu, Shen, Wallis, Allen-Zhu, Li, Wang, Wang, Chen, ICLR 2022, "LoRA: Low-rank adaptation of large language models".
//
//   y = W x + (alpha / rank) B A x;   W stays as it is, A [rank, inputs] and B [outputs, rank] are trained
//
// Names, shapes and initial values are those of Hugging Face's PEFT: A is random, B begins with zeros. So the adapted
// model begins as the frozen one.
//
// Thread: as models/families/model.h. Memory: of each adapter, `rank` floats a token of a batch.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/families/model.h"
#include "runtime/base/large_vector.h"
#include "runtime/base/types.h"

namespace rumor::models {

// The weights that stay as they are, in the order of the layout of the model without adapters.
struct FrozenBase {
  std::vector<float> weights;
  Hash256 hash;  // SHA-256 of the weights, little-endian: part of a run's identity
};

// An adapter and its projection.
struct AdapterPlace {
  std::string projection;    // "model.layers.0.self_attn.q_proj"
  std::uint32_t weight = 0;  // offset of its weight in the base
  std::uint32_t a = 0, b = 0;  // offsets in the vector of the adapters
  long in = 0, out = 0;
  bool inputs_first = false;  // the base has the weight as [in, out] (GPT-2), not as [out, in]
};

// The adapters of a model.
struct AdapterPlan {
  ParamLayout layout;  // A, then B, of each adapted projection, in the order of the base; names as in PEFT
  std::vector<AdapterPlace> places;
  long rank = 0;
  float scale = 0;  // alpha / rank
};

// Projections that PEFT adapts by default in this family.
std::vector<std::string> usual_adapter_targets(std::string_view family);

// `config`: of the adapted model; `whole`: the same without adapters. Errors: Errc::usage, for a family that knows no
// adapters, and for a target that is no projection, naming those that are.
Result<AdapterPlan> plan_adapters(const ModelConfig& config, const Model& whole);

// weights += (alpha / rank) B A, for every adapted projection: the model that needs no adapters. Requires: `adapters`
// of plan.layout, `weights` of the base.
void merge_adapters(const AdapterPlan& plan, std::span<const float> adapters, std::span<float> weights);

// Computes the adapters' part of a step. A family calls it beside each of its projections.
class Adapters {
 public:
  explicit Adapters(AdapterPlan plan);

  const AdapterPlan& plan() const { return plan_; }
  // The adapters of the passes that follow, and room for their gradient, which backward() overwrites. Both belong to
  // the caller. `gradient` may be empty before a forward pass.
  void use(std::span<const float> params, std::span<float> gradient);

  // Whether the projection with this weight has an adapter.
  bool has(std::uint32_t weight) const { return find(weight) != nullptr; }
  // y += the adapter's part. x: [rows, in]; y: [rows, out], y_row floats from row to row. Nothing where the projection
  // has none.
  void forward(Parallel* parallel, std::uint32_t weight, long rows, long y_row, const float* x, float* y);
  // Backward pass of the last forward() of this projection. change: d loss / d y, laid out as y. Writes the gradients
  // of A and B, and adds to x_change [rows, in].
  void backward(Parallel* parallel, std::uint32_t weight, long rows, long y_row, const float* x, const float* change,
                float* x_change);

  std::size_t memory_bytes() const;

 private:
  const AdapterPlace* find(std::uint32_t weight) const;

  AdapterPlan plan_;
  std::span<const float> params_;
  std::span<float> gradient_;
  std::vector<LargeVector<float>> inner_;  // of each place: scale * A x, [rows, rank]
  LargeVector<float> inner_change_;        // [rows, rank]
  LargeVector<float> turned_;              // A or B, transposed
};

}  // namespace rumor::models
