#include "runtime/training/update_encoder.h"

#include <algorithm>
#include <utility>

#include "compress/payload/recorded.h"

namespace rumor {

UpdateEncoder::UpdateEncoder(const RunConfig& config, std::uint32_t params) {
  if (config.records) bytes_max_ -= compress::record_overhead + limits::record_bytes_max;
  if (config.has_byte_budget())
    budget_.emplace(params, compress::ByteBudget::Limits{config.bytes_per_update, config.bytes_per_second});
}

void UpdateEncoder::plan(const StepPlan& plan, compress::Compressor& compressor) {
  if (!budget_) return compressor.set_density(plan.density);
  seconds_ += plan.seconds;
  if (!plan.hold) compressor.set_entries(budget_->plan(std::exchange(seconds_, 0)));
}

Result<Bytes> UpdateEncoder::encode(compress::ChosenEntries& chosen) {
  const std::uint64_t budget = budget_ ? budget_->bytes_max() : UINT64_MAX;
  auto payload = compress::encode_within(chosen, std::min(budget, bytes_max_));
  if (payload && budget_) budget_->sent(chosen.count(), payload->size());
  return payload;
}

Result<void> UpdateEncoder::encode(compress::ChosenEntries& chosen, StepResult& result) {
  auto payload = encode(chosen);
  if (!payload) return payload.error();
  result.payload = std::move(payload).value();
  result.at_range_end = chosen.left_out();
  return {};
}

}  // namespace rumor
