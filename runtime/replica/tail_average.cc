#include "runtime/replica/tail_average.h"

#include <algorithm>
#include <cmath>

#include "compress/payload/recorded.h"
#include "compress/payload/update.h"
#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor {

namespace {

Error unreadable(const UpdateKey& key) {
  return {Errc::corrupt, str("update ", key.seq, " of stream ", key.stream.hex(), " in the log is damaged")};
}

// The updates of the tail, newest first, and their samples.
struct Tail {
  std::vector<UpdateKey> keys;
  std::uint64_t samples = 0;
};

Result<Tail> tail_of(const ReplicaState& state, const UpdateLog& log, std::uint64_t samples) {
  Tail tail;
  std::vector<UpdateKey> keys = log.keys();
  std::reverse(keys.begin(), keys.end());
  for (const UpdateKey& key : keys) {
    if (tail.samples >= samples) break;
    if (!state.have.contains(key)) continue;
    const auto header = log.header(key);
    if (!header) return unreadable(key);
    tail.keys.push_back(key);
    tail.samples += header->samples;
  }
  tail.samples = std::min(tail.samples, samples);
  return tail;
}

// mean[i] -= share * the change of weight i, in grid units.
void take_off(const ParamLayout& layout, const compress::SparseUpdate& update, double share,
              std::vector<double>& mean) {
  for (const compress::StepRun& run : compress::step_runs(layout, update))
    for (std::size_t e = run.first; e < run.first + run.count; ++e) {
      const double change = share * static_cast<double>(run.step);
      mean[update.index[e]] -= update.negative[e] != 0 ? -change : change;
    }
}

}  // namespace

Result<TailAverage> tail_average(const RunForm& form, const ReplicaState& state, const UpdateLog& log,
                                 std::uint64_t samples) {
  RUMOR_CHECK(samples >= 1 && state.weights.size() == form.layout.params());
  const auto tail = tail_of(state, log, samples);
  if (!tail) return tail.error();
  std::vector<double> mean(state.weights.begin(), state.weights.end());
  std::uint64_t after = 0;
  for (const UpdateKey& key : tail->keys) {
    const auto stored = log.find(key);
    if (!stored) return unreadable(key);
    const auto update = compress::decode(form.layout, compress::update_part(*stored->payload));
    if (!update) return unreadable(key);
    after += stored->header.samples;
    if (after >= tail->samples) break;
    const double share = 1 - static_cast<double>(after) / static_cast<double>(tail->samples);
    take_off(form.layout, *update, share, mean);
  }
  TailAverage average{std::vector<float>(mean.size()), tail->samples};
  const double unit = std::ldexp(1.0, -form.grid_bits);
  std::transform(mean.begin(), mean.end(), average.weights.begin(),
                 [unit](double weight) { return static_cast<float>(weight * unit); });
  return average;
}

}  // namespace rumor
