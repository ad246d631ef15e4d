#include "runtime/training/built_in_model.h"

#include <utility>

#include "runtime/base/bytes.h"

namespace rumor {

std::uint64_t sampling_seed(const RunConfig& config, const NodeId& node) {
  return mix64(config.seed ^ ByteReader(node.view()).u64());
}

Result<BuiltInModel> BuiltInModel::create(const RunConfig& config, std::shared_ptr<const models::DataSet> data,
                                          models::Shard shard, std::uint64_t sampling_seed) {
  shard.seed = config.seed;  // one split for the whole run: parts must not overlap
  shard.skew = config.data.skew;
  const bool draws_rows = config.model.units.begin == 0;  // a later part of a model has them from a neighbour
  if (draws_rows)
    if (auto exists = models::check_shard(*data, shard); !exists) return exists.error();
  BuiltInModel made{.grid_bits = config.grid_bits,
                    .rows = config.batch_rules(),
                    .batches = config.batches(),
                    .seed = config.seed,
                    .data = data,
                    .config = config.model,
                    .model = {},
                    .optimizer = {},
                    .sampler = {},
                    .compressor = {.grid_bits = config.grid_bits,
                                   .emit = config.emit,
                                   .scope = config.scope,
                                   .residual_decay = config.fades() ? config.residual_decay : 0}};
  data->describe(made.config);
  made.config.sizes = config.resolution.sizes();
  auto model = models::make_model(made.config);
  if (!model) return model.error();
  made.model = std::move(model).value();
  auto optimizer = models::make_optimizer(config.optimizer, made.layout().params(),
                                          models::hidden_matrices(*made.model));
  if (!optimizer) return optimizer.error();
  made.optimizer = std::move(optimizer).value();
  if (draws_rows)
    made.sampler.emplace(std::move(data), shard, config.batch * (config.hogwild > 0 ? made.batches : 1), sampling_seed,
                         made.model->state_floats());
  if (!config.has_byte_budget()) made.compressor.density = config.density_for(1);
  return made;
}

}  // namespace rumor
