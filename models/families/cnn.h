// Cnn: convolutions, pooling, GroupNorm and residual blocks, then dense layers. From a LeNet to a ResNet-20 for
// pictures of 28 x 28 or 32 x 32. models/families/cnn_plan.h has the keys for each network, and the PyTorch module that
// loads it.
//
// One picture goes through all steps before the next one begins, forward and backward, so that the output of a step is
// still in the cache for the next step. Only the dense head sees the whole batch. Pictures are distributed over
// threads. Gradients are summed over fixed parts of the batch (sixteen at most, at least four pictures each), and then
// over the
// parts in order: the bits are the same for any number of threads.
//
// With ModelConfig::sizes there is a plan for each size, and a batch's x says which one forward() takes.
//
// Memory: the maps of every picture of the largest batch; for each thread those of one picture; for each part
// of the batch the gradient of the convolutions.
//
// Thread: one caller at a time.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "models/families/cnn_plan.h"
#include "models/families/model.h"
#include "models/layers/dense.h"
#include "runtime/base/large_vector.h"

namespace rumor::models {

// Errors: those of plan_cnn; Errc::limit (too many parameters).
Result<std::unique_ptr<Model>> make_cnn(const ModelConfig& config);

class Cnn final : public Model {
 public:
  // The first plan is that of whole pictures. Requires: at least one; all have the tensors of `layout`.
  Cnn(ParamLayout layout, std::vector<CnnPlan> plans);

  const ParamLayout& layout() const override { return layout_; }
  ModelPart part() const override { return whole().part; }
  BorderFloats border_floats() const override;
  // The scale of a GroupNorm begins at one.
  TensorStart start_of(const TensorInfo& tensor) const override;
  void forward(std::span<const float> params, const Batch& batch, std::span<const float> below,
               std::span<float> above) override;
  float backward(std::span<const float> params, const Batch& batch, std::span<const float> below,
                 std::span<const float> above_change, std::span<float> gradient,
                 std::span<float> below_change) override;
  // In pieces of 64 pictures, so a whole test set may be passed.
  Evaluation evaluate(std::span<const float> params, const Batch& batch) override;
  void predict(std::span<const float> params, const Batch& batch, std::span<float> out) override;
  std::size_t predictions(std::uint32_t rows) const override { return std::size_t{rows} * head_->classes(); }
  std::uint32_t exit_classes() const override { return head_ ? head_->classes() : 0; }
  void predict_exit(std::span<float> out) override;
  std::uint64_t multiply_adds(std::uint32_t rows) const override { return count_work(whole(), rows); }
  std::uint64_t multiply_adds_at(std::uint32_t rows, std::uint32_t size) const override;
  std::size_t memory_bytes() const override;
  void set_parallel(Parallel* parallel) override;

 private:
  // Working memory of one thread.
  struct Desk {
    LargeVector<float> change;  // d loss / d maps of one picture
    LargeVector<float> border;  // Convolution's scratch
  };
  template <class Work>  // work(part, desk)
  void share_out(std::size_t parts, const Work& work);
  const CnnPlan& whole() const { return plans_.front(); }
  const CnnPlan& plan() const { return plans_[at_]; }
  std::uint64_t count_work(const CnnPlan& plan, std::uint32_t rows) const;
  // Takes the plan for pictures of this size.
  void choose_plan(std::uint32_t rows, std::span<const float> input);
  void check(std::span<const float> params, const Batch& batch) const;
  void forward_maps(const float* params, const float* x, std::uint32_t rows, float* features);
  void forward_whole(const float* params, const float* x, std::uint32_t rows);
  void forward_step(const CnnStep& step, const float* params, float* maps, Desk& desk) const;
  void backward_maps(const float* params, std::uint32_t rows, const float* change_features, float* gradient,
                     float* change_x);
  void backward_picture(const float* params, std::uint32_t row, const float* change_features, float* gradient,
                        Desk& desk) const;
  void backward_step(const CnnStep& step, const float* params, const float* maps, float* gradient,
                     Desk& desk) const;
  void backward_weights(const CnnStep& step, const float* params, const float* maps, float* gradient,
                        Desk& desk) const;
  void sum_parts(std::size_t parts, float* gradient);

  const TensorInfo& tensor(const CnnStep& step, std::uint32_t next = 0) const {
    return layout_.tensors()[step.tensor + next];
  }

  ParamLayout layout_;
  std::vector<CnnPlan> plans_;
  std::size_t at_ = 0;  // the plan of the batch at hand
  std::uint32_t body_params_ = 0;  // of the convolutions and norms: the first of the vector
  std::optional<DenseLayers> head_;  // in the last part
  std::vector<ConvolutionWeights> ordered_;
  LargeVector<float> maps_;             // [rows][plan floats]
  LargeVector<float> features_;         // [rows][channels][height][width], the input of the head
  LargeVector<float> change_features_;  // d loss / d features_
  LargeVector<float> part_gradients_;   // [parts][body_params_], convolutions by place
  std::vector<Desk> desks_;
  Parallel* parallel_ = nullptr;
};

}  // namespace rumor::models
