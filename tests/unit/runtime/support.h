// Small replicas and updates for the tests of runtime.
#pragma once

#include <algorithm>
#include <vector>

#include "compress/payload/update.h"
#include "runtime/base/prng.h"
#include "runtime/base/sha256.h"
#include "runtime/replica/replica.h"

namespace rumor::test {

inline RunId some_run() {
  RunId run;
  run.bytes.fill(7);
  return run;
}

inline ParamLayout small_layout(std::uint32_t rows = 20, std::uint32_t cols = 30) {
  return ParamLayout::create({{"a.weight", {rows, cols}}, {"a.bias", {rows}}}).value();
}

// One tensor of this many parameters.
inline ParamLayout flat_layout(std::uint32_t params) {
  return ParamLayout::create({{"flat", {params}}}).value();
}

inline compress::SparseUpdate random_update(Prng& prng, std::uint32_t params, std::size_t entries,
                                            std::int32_t step_max = 1 << 20) {
  std::vector<std::uint32_t> index(params);
  for (std::uint32_t i = 0; i < params; ++i) index[i] = i;
  prng.shuffle(std::span<std::uint32_t>(index));
  compress::SparseUpdate update;
  update.index.assign(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(entries));
  std::sort(update.index.begin(), update.index.end());
  for (std::size_t e = 0; e < entries; ++e)
    update.negative.push_back(static_cast<std::uint8_t>(prng.below(2)));
  if (entries > 0) update.step = static_cast<std::int32_t>(prng.between(1, step_max));
  return update;
}

inline StreamId stream(std::uint8_t n) {
  StreamId id;
  id.bytes.fill(n);
  return id;
}

inline NodeId node(std::uint8_t n) {
  NodeId id;
  id.bytes.fill(n);
  return id;
}

// A header that fits `update`, with one step for all its tensors, in a replica of some_run().
inline gossip::UpdateHeader header_for(const compress::SparseUpdate& update, StreamId of, std::uint64_t seq) {
  gossip::UpdateHeader header;
  header.key = {of, seq};
  header.origin = node(of.bytes[0]);
  header.fingerprint = Fingerprinter(some_run()).of_update(small_layout(), update);
  header.period = seq;
  header.samples = 16;
  return header;
}

inline gossip::StoredUpdate stored(const ParamLayout& layout, const compress::SparseUpdate& update,
                                   StreamId of, std::uint64_t seq) {
  gossip::StoredUpdate s;
  s.header = header_for(update, of, seq);
  Bytes payload = compress::encode(layout, update);
  s.header.payload_hash = sha256(payload);
  s.payload = std::make_shared<const Bytes>(std::move(payload));
  return s;
}

}  // namespace rumor::test
