// Options: set before a node starts. Its identity, its first contacts, its rule of admission, its number of links.
//
// Thread: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gossip/contract/audit_port.h"
#include "gossip/contract/copy_port.h"
#include "gossip/contract/link_coder.h"
#include "gossip/links/stage_links.h"
#include "gossip/trust/admission.h"
#include "gossip/trust/signing.h"
#include "runtime/base/limits.h"
#include "runtime/base/run_part.h"
#include "runtime/base/types.h"

namespace rumor::gossip {

// How many links a node wants. With at most `high` other members: one to each.
struct LinkCounts {
  std::size_t low = limits::links_low;        // with fewer it asks full nodes for a place
  std::size_t target = limits::links_target;  // looks for more until then
  std::size_t high = limits::links_high;      // takes no more
  std::size_t dialled = limits::links_low;    // by itself, at least, as far as `high` allows
};

// Links to peers of other stages.
struct StageLinkCounts {
  std::size_t target = limits::stage_links_target;  // to each neighbouring stage: dials until then
  std::size_t high = limits::stage_links_high;      // to one stage: takes no more
};

// How an origin sends less where links are too narrow (PROTOCOL.md 6.1.13): updates less often, what they would have
// said merges in the residual; updates of fewer entries first, by Protocol::density_factor(); or steps less often, each
// with an update of all its entries, since its trainer waits for Protocol::may_publish().
enum class GiveWay : std::uint8_t { rarer_updates, thinner_updates, fewer_steps };

struct Options {
  NodeId self;
  StreamId stream;  // of this process
  RunId run;
  std::string run_name;                // for error texts only
  std::vector<std::string> advertise;  // host:port others may dial; empty when not listening
  std::vector<std::string> seeds;      // tried in parallel, retried for ever
  // Learned in earlier lives; tried like seeds, but given up after a while.
  std::vector<std::string> known_addresses;
  CodingRule coding = CodingRule::automatic;  // of the payloads we send
  std::shared_ptr<const Keys> keys = {};      // never null: of `self`
  AdmissionRule rule = {};                    // who may be linked; the owner in it is the run's
  Bytes admit = {};                           // an Admit to show, or nothing
  std::int64_t unix_start = 0;                // seconds since 1970 at TimePoint 0, for tokens' ends only
  LinkCounts links = {};
  // Set where peers have models of their own (PROTOCOL.md 6.14): neighbours then exchange public copies. Null: every
  // update goes to every peer. Must outlive the protocol.
  CopyPort* copies = nullptr;
  // Set in runs with records (PROTOCOL.md 6.16). Must outlive the protocol.
  AuditPort* audits = nullptr;
  // For peers of other runs that dial us: the parts of this run, and a note on its initial weights.
  std::vector<RunPart> parts = {};
  Bytes start = {};
  // When this process began, in milliseconds since 1970: of two with one key, the later one ends (PROTOCOL.md 5.12).
  std::uint64_t began = 0;
  GiveWay gives_way = GiveWay::rarer_updates;
  bool observes = false;  // publishes nothing; for texts only
  // Set where the run is a stage of a pipeline (PIPELINE.md 9), both or none. `stage_links` must outlive the protocol.
  std::optional<Stage> stage = {};
  StageLinks* stage_links = nullptr;
  StageLinkCounts stage_link_counts = {};
};

}  // namespace rumor::gossip
