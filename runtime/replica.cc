#include "runtime/replica.h"

#include <algorithm>

#include "runtime/base/sha256.h"
#include "runtime/base/text.h"

namespace rumor {

Replica::Replica(const RunId& run, ParamLayout layout, std::vector<std::int32_t> initial)
    : fingerprinter_(run), layout_(std::move(layout)) {
  RUMOR_CHECK(initial.size() == layout_.params());
  state_.weights = std::move(initial);
  state_.fingerprint = fingerprinter_.of_weights(state_.weights);
}

Result<gossip::Accepted> Replica::apply(const gossip::UpdateHeader& header,
                                        const compress::SparseUpdate& update) {
  const std::uint64_t claimed = fingerprinter_.of_update(layout_, update);
  if (claimed != header.fingerprint)
    return Error{Errc::corrupt, str("update ", header.key.seq, " of stream ", header.key.stream.brief(),
                                    ": its entries do not have the fingerprint its header claims")};
  if (!state_.have.insert(header.key)) return gossip::Accepted::duplicate;
  std::uint64_t moved = 0;  // fingerprint of what really happens to the weights
  for (const compress::StepRun& run : compress::step_runs(layout_, update)) {
    const auto step = static_cast<std::uint32_t>(run.step);
    for (std::size_t e = run.first; e < run.first + run.count; ++e) {
      RUMOR_CHECK(update.index[e] < state_.weights.size());
      std::int32_t& weight = state_.weights[update.index[e]];
      const auto before = static_cast<std::uint32_t>(weight);
      weight = static_cast<std::int32_t>(update.negative[e] ? before - step : before + step);
      moved = Fingerprinter::add(
          moved, fingerprinter_.of_change(update.index[e], static_cast<std::uint32_t>(weight) - before));
    }
  }
  RUMOR_CHECK(moved == claimed);
  state_.fingerprint = Fingerprinter::add(state_.fingerprint, claimed);
  state_.samples += header.samples;
  state_.period = std::max(state_.period, header.period);
  digest_current_ = false;
  return gossip::Accepted::applied;
}

Result<void> Replica::restore(ReplicaState state) {
  if (state.weights.size() != state_.weights.size())
    return Error{Errc::mismatch,
                 str("it holds ", state.weights.size(), " weights, this model has ", state_.weights.size())};
  if (fingerprinter_.of_weights(state.weights) != state.fingerprint)
    return Error{Errc::corrupt, "its weights do not have the fingerprint it claims"};
  state_ = std::move(state);
  digest_current_ = false;
  return {};
}

const gossip::ReplicaDigest& Replica::digest() const {
  if (!digest_current_) {
    ByteWriter out;
    state_.have.encode(out);
    digest_ = {sha256(out.bytes()), state_.fingerprint, state_.have.count()};
    digest_current_ = true;
  }
  return digest_;
}

}  // namespace rumor
