#include "runtime/training/gpu_trainer.h"

#include <utility>

#include "gpu/device/plugin.h"
#include "runtime/training/device_trainer.h"

namespace rumor {

Result<GpuTrainer> make_gpu_trainer(std::span<const int> gpus, const RunConfig& config,
                                    std::shared_ptr<const models::DataSet> data, models::Shard shard,
                                    std::uint64_t seed) {
  auto opened = gpu::open_gpus(gpus);
  if (!opened) return opened.error();
  auto name = (*opened)->name();
  if (!name) return name.error();
  auto trainer = DeviceTrainer::create(std::move(opened).value(), config, std::move(data), shard, seed);
  if (!trainer) return trainer.error();
  return GpuTrainer{std::move(trainer).value(), std::move(name).value()};
}

}  // namespace rumor
