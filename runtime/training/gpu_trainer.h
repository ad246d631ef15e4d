// Makes the trainer of a built-in model on GPUs; callers know nothing of its parts. A program whose peers train on the
// processor alone may have another function of this name, without the code for GPUs (tests/no_gpu.cc).
//
// Thread: plain function.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "models/data/dataset.h"
#include "runtime/run/run_config.h"
#include "runtime/training/trainer.h"

namespace rumor {

struct GpuTrainer {
  std::unique_ptr<Trainer> trainer;
  std::string device;  // the name of the first GPU
};

// `gpus`: numbers of those of this machine (gpu/device/plugin.h). `seed`: of the sampling. Errors: those of
// gpu::open_gpus(), and of DeviceTrainer::create().
Result<GpuTrainer> make_gpu_trainer(std::span<const int> gpus, const RunConfig& config,
                                    std::shared_ptr<const models::DataSet> data, models::Shard shard,
                                    std::uint64_t seed);

}  // namespace rumor
