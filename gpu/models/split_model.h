// SplitModel: one model on the GPUs of a group. Each GPU computes a part of every batch (gpu/README.md, chapter 5).
//
// Parameters and gradient in the arguments belong to the first GPU. The other GPUs have copies of the parameters, which
// change when follow() or follow_at() is called, and gradients of their own, which are added to the first GPU's. Loss
// and gradient are those of the whole batch, however it is split: each part divides by the rows of all parts.
//
// The work of a step on each GPU is recorded once and then started with a single call (gpu/device/repeated.h).
//
// Bits: with one GPU, those of its DeviceModel. With several GPUs, the order of sums is that of the group.
// Thread: one caller at a time. Memory: each GPU but the first needs 8 bytes per parameter, and room for what arrives.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/device/group.h"
#include "gpu/device/repeated.h"
#include "gpu/models/device_model.h"

namespace rumor::gpu {

class SplitModel {
 public:
  // Refers to `gpus`. Errors: those of make_device_model(); Errc::limit.
  static Result<SplitModel> create(const GpuGroup& gpus, const models::ModelConfig& config, Precision precision);

  // All of `params` has changed: updates the copies. Errors: Errc::io.
  Result<void> follow(const DeviceArray<float>& params) const;
  // The first `count` of these places in `params` have changed: updates the copies. Places are on the first GPU and may
  // repeat. Places and values go from the first GPU to all, 8 bytes each. Errors: Errc::limit, Errc::io.
  Result<void> follow_at(const DeviceArray<std::uint32_t>& place, std::uint64_t count,
                         const DeviceArray<float>& params);

  // As DeviceModel::loss_and_gradient(). A GPU without rows idles.
  Result<float> loss_and_gradient(const DeviceArray<float>& params, const models::Batch& batch,
                                  const DeviceArray<float>& gradient);
  // Runs on the first GPU alone; `params` is its memory.
  Result<models::Evaluation> evaluate(const DeviceArray<float>& params, const models::Batch& batch);
  // How many parts of steps were begun from a recording.
  std::uint64_t repeats() const;
  std::size_t parts() const { return parts_.size(); }
  // The copy on GPU i, from 1 on.
  const DeviceArray<float>& copy(std::size_t i) const { return parts_[i].params; }
  // Memory on all GPUs: activations; copies of parameters; gradients; gradients that arrive from other GPUs.
  std::size_t activation_bytes() const;
  std::size_t copy_bytes() const;
  std::size_t gradient_bytes() const;
  std::size_t entry_bytes() const;

 private:
  struct Part {
    std::unique_ptr<DeviceModel> model;
    DeviceArray<float> params, gradient;  // not for the first GPU
    DeviceArray<std::uint32_t> place;  // not for the first GPU
    DeviceArray<float> value;
    Repeated step;
  };

  explicit SplitModel(const GpuGroup& gpus) : gpus_(&gpus) {}
  template <class Of>
  std::uint64_t sum(Of of) const;  // over the parts
  Result<void> send(const std::vector<models::Batch>& pieces, std::uint32_t all_rows);
  Result<void> compute(std::size_t i, std::uint32_t rows, std::uint32_t all_rows, const DeviceArray<float>& params,
                       const DeviceArray<float>& gradient);
  Result<float> loss(const std::vector<models::Batch>& pieces);

  const GpuGroup* gpus_;
  std::vector<Part> parts_;
};

// Splits a batch into `parts` consecutive parts whose rows differ by one at most; the last ones may be empty.
std::vector<models::Batch> split_batch(const models::Batch& batch, std::size_t parts);

}  // namespace rumor::gpu
