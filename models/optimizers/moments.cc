#include "models/optimizers/moments.h"

#include <bit>
#include <cstring>

#include "models/kernels/portable_math.h"
#include "runtime/base/bytes.h"
#include "runtime/base/memory_bytes.h"
#include "runtime/base/text.h"

namespace rumor::models {

static_assert(std::endian::native == std::endian::little, "state is saved as the floats lie in memory");

Moments::Moments(OptimizerConfig config, std::uint32_t params, const std::vector<std::size_t>& sizes)
    : config_(std::move(config)), params_(params) {
  for (const std::size_t size : sizes) moments_.emplace_back(size, 0.0f);
}

std::size_t Moments::memory_bytes() const {
  std::size_t bytes = 0;
  for (const LargeVector<float>& moment : moments_) bytes += capacity_bytes(moment);
  return bytes;
}

StepRule Moments::adam_rule(double rate, double beta1) const {
  return {.kind = StepRule::Kind::adam,
          .factor = static_cast<float>(-rate / (1 - portable_power(beta1, steps_))),
          .keep1 = static_cast<float>(beta1),
          .take1 = static_cast<float>(1 - beta1),
          .keep2 = static_cast<float>(config_.beta2),
          .take2 = static_cast<float>(1 - config_.beta2),
          .bias_correction = static_cast<float>(1 / (1 - portable_power(config_.beta2, steps_))),
          .epsilon = static_cast<float>(config_.epsilon)};
}

Bytes Moments::save() const {
  ByteWriter out;
  out.text(config_.kind);
  out.u64(steps_);
  out.u32(params_);
  for (const LargeVector<float>& moment : moments_)
    out.raw({reinterpret_cast<const std::uint8_t*>(moment.data()), moment.size() * sizeof(float)});
  return out.take();
}

Result<void> Moments::load(BytesView state) {
  ByteReader in(state);
  const std::string kind = in.text(32);
  const std::uint64_t steps = in.u64();
  const std::uint32_t params = in.u32();
  if (in.failed()) return Error{Errc::corrupt, str("optimizer state of ", state.size(), " bytes is cut short")};
  if (kind != config_.kind || params != params_)
    return Error{Errc::corrupt, str("optimizer state is of '", kind, "' with ", params, " parameters, not of ",
                                    config_.kind, " with ", params_)};
  std::size_t expected = 0;
  for (const LargeVector<float>& moment : moments_) expected += moment.size() * sizeof(float);
  if (in.remaining() != expected)
    return Error{Errc::corrupt, str("optimizer state has ", in.remaining(), " bytes of moments, not ", expected)};
  steps_ = steps;
  for (LargeVector<float>& moment : moments_) {
    const BytesView bytes = in.raw(moment.size() * sizeof(float));
    if (!bytes.empty()) std::memcpy(moment.data(), bytes.data(), bytes.size());
  }
  return {};
}

}  // namespace rumor::models
