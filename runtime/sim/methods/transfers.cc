#include "runtime/sim/methods/transfers.h"

#include <algorithm>

namespace rumor::sim {

namespace {

Duration time_on_wire(std::size_t bytes, std::uint64_t bytes_per_second) {
  return Duration(static_cast<std::int64_t>((bytes * 1'000'000 + bytes_per_second - 1) / bytes_per_second));
}

}  // namespace

Transfers::Transfers(const NetworkModel& model, std::size_t hosts, std::uint64_t seed)
    : model_(model),
      hosts_(hosts),
      prng_(Prng::named(seed, "jitter")),
      latency_(hosts * hosts),
      up_free_(hosts),
      down_free_(hosts) {
  Prng draw = Prng::named(seed, "latency");
  for (std::size_t a = 0; a < hosts; ++a)
    for (std::size_t b = a + 1; b < hosts; ++b)
      latency_[a * hosts + b] = latency_[b * hosts + a] =
          Duration(draw.between(model_.latency_min.count(), model_.latency_max.count()));
}

TimePoint Transfers::deliver(std::size_t from, std::size_t to, std::size_t bytes, TimePoint now) {
  up_free_[from] = std::max(now, up_free_[from]) + time_on_wire(bytes, model_.up_bytes_per_second);
  const TimePoint reaches =
      up_free_[from] + latency_[from * hosts_ + to] + Duration(prng_.between(0, model_.jitter.count()));
  down_free_[to] = std::max(reaches, down_free_[to]) + time_on_wire(bytes, model_.down_bytes_per_second);
  return down_free_[to];
}

}  // namespace rumor::sim
