// For programs whose peers train on the processor alone: the code for GPUs is not linked.
#include "runtime/training/gpu_trainer.h"

namespace rumor {

Result<GpuTrainer> make_gpu_trainer(std::span<const int>, const RunConfig&, std::shared_ptr<const models::DataSet>,
                                    models::Shard, std::uint64_t) {
  return Error{Errc::usage, "this program of the tests has no code for GPUs"};
}

}  // namespace rumor
