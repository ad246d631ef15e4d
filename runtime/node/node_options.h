// NodeOptions: what a node is told before it starts, beside the run file.
//
// Thread: plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gossip/links/options.h"
#include "gossip/pipeline/pipeline.h"
#include "gossip/trust/admission.h"
#include "gossip/trust/signing.h"
#include "runtime/audit/draws.h"
#include "runtime/base/sha256.h"
#include "runtime/base/time.h"
#include "runtime/base/types.h"
#include "runtime/replica/disk.h"
#include "runtime/run/run_config.h"

namespace rumor {

struct NodeOptions {
  NodeId node;
  StreamId stream;                           // gossip::stream_of(node, ...)
  std::shared_ptr<const gossip::Keys> keys;  // of `node`; never null
  std::vector<std::string> seeds, advertise, known_addresses;
  gossip::AdmissionRule rule;   // its owner is the run file's
  Bytes admit;                  // the token to show (gossip/trust/admission.h); empty: none
  std::int64_t unix_start = 0;  // seconds since 1970 at TimePoint 0
  std::uint64_t began = 0;      // milliseconds since 1970 when this process began (gossip/links/options.h)
  bool observe = false;         // take part without training
  std::optional<gossip::LinkCounts> links;  // absent: as many as the exchange asks for
  models::Shard shard;
  // The weights that the run starts from; null: random ones from its seed. Released once the replica has them:
  // it takes them out where nobody else holds them.
  std::shared_ptr<const models::StartWeights> start;
  // The weights in `start` are not those of its hash: a snapshot of another peer brings these (PROTOCOL.md 6.7).
  bool lacks_weights = false;
  Hash256 audit_secret = {};      // of this process alone (runtime/AUDIT.md); from the operating system in the daemon
  audit::AuditedPart audited = {};
  std::uint64_t chance_seed = 0;  // of the protocol's generator; from the operating system in the daemon
  // The node ends once the run has this many samples; absent: it trains run.samples, then serves on.
  std::optional<std::uint64_t> until_samples;
  // Between evaluations on the test set while training, which take at most a tenth of the time; 0: at the end only.
  Duration evaluation_every{2s};
  std::uint32_t evaluation_rows = 2000;  // of the test set, while training; the evaluation at the end takes all
  Duration checkpoint_every{0};          // 0: none; at most limits::checkpoint_bytes_per_second
  bool report_applied = false;           // Applied and Published effects
  // The run is a stage of a pipeline (gossip/PIPELINE.md); `stream` in it is not used. Absent: it is none.
  std::optional<gossip::PipelineOptions> pipeline = {};
  Disk* disk = nullptr;                  // outlives the node; null: the log is in memory and short
};

}  // namespace rumor
