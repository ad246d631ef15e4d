// SplitModel: one model on the GPUs of a group, each with a part of every batch (gpu/README.md, chapter 5).
//
// Parameters and gradient that its functions are given are the first GPU's. The others have copies of the parameters,
// which follow where they are told to, and gradients of their own, which are added to the first's. The loss and the
// gradient are those of the whole batch, whatever the parts: each divides by the rows of all.
//
// The work of a step on each GPU is recorded once and then started with a single call (gpu/device/repeated.h).
//
// Bits: with one GPU, those of its DeviceModel. With several GPUs, the order of sums is that of the group.
// Thread: one caller at a time. Memory: on each GPU but the first eight bytes a parameter, and what arrives.
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

  // `params` is another one everywhere: so are the copies. Errors: Errc::io.
  Result<void> follow(const DeviceArray<float>& params) const;
  // It is another one at the first `count` of these places, which lie on the first GPU and may come more than once: so
  // are the copies. Places and values go from the first to all, 8 bytes each. Errors: Errc::limit, Errc::io.
  Result<void> follow_at(const DeviceArray<std::uint32_t>& place, std::uint64_t count,
                         const DeviceArray<float>& params);

  // As DeviceModel's. A GPU for which there is no row waits.
  Result<float> loss_and_gradient(const DeviceArray<float>& params, const models::Batch& batch,
                                  const DeviceArray<float>& gradient);
  // On the first GPU alone, whose `params` these are.
  Result<models::Evaluation> evaluate(const DeviceArray<float>& params, const models::Batch& batch);
  // Parts of steps that were begun at once, so far.
  std::uint64_t repeats() const;
  std::size_t parts() const { return parts_.size(); }
  // The copy of GPU i, from 1 on.
  const DeviceArray<float>& copy(std::size_t i) const { return parts_[i].params; }
  // Memory on all GPUs: activations; copies of parameters; gradients; gradients that arrive from other GPUs.
  std::size_t activation_bytes() const;
  std::size_t copy_bytes() const;
  std::size_t gradient_bytes() const;
  std::size_t entry_bytes() const;

 private:
  struct Part {
    std::unique_ptr<DeviceModel> model;
    DeviceArray<float> params, gradient;  // but of the first
    DeviceArray<std::uint32_t> place;  // but of the first
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

// A batch in so many parts, one after another, whose rows differ by one at most; the last may have none.
std::vector<models::Batch> split_batch(const models::Batch& batch, std::size_t parts);

}  // namespace rumor::gpu
