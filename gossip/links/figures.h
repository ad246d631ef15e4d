// The figures that the protocol shows: traffic since the start, the links of this moment, and whether others can dial
// us.
//
// Thread: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gossip/contract/link_coder.h"
#include "runtime/base/figures.h"
#include "runtime/base/time.h"
#include "runtime/base/types.h"

namespace rumor::gossip {

// Figures since start; bytes are of frames handed to and received from links.
struct Counters {
  std::uint64_t sent_bytes = 0, received_bytes = 0;
  std::uint64_t sent_control_bytes = 0;  // everything but DATA and SNAPSHOT_DATA
  // Bytes of payloads sent: in the coding of their link, and in canonical form.
  std::uint64_t sent_payload_bytes = 0, sent_canonical_bytes = 0;
  std::uint64_t updates_received = 0;    // DATA frames that carried something new
  std::uint64_t updates_duplicate = 0;   // DATA frames that did not
  std::uint64_t updates_invalid = 0;
  std::uint64_t snapshots_installed = 0;
  // Updates that were applied here and that no peer held when two histories met (PROTOCOL.md, "Orphans"). Goes down
  // again when a third peer gives one back.
  std::uint64_t updates_lost = 0;
};

inline constexpr FigureRow<Counters> traffic_rows[] = {
    figure<&Counters::sent_bytes>("sent_bytes").shown("sent", Form::flow, 9)
        .counter("rumor_net_sent_bytes_total", "Frame bytes sent.").curve("sent_bytes", "traffic/sent_bytes"),
    figure<&Counters::received_bytes>("received_bytes").shown("received", Form::flow)
        .counter("rumor_net_received_bytes_total", "Frame bytes received.")
        .curve("received_bytes", "traffic/received_bytes"),
    figure<&Counters::sent_control_bytes>("sent_control_bytes"),
    figure<&Counters::sent_payload_bytes>("sent_payload_bytes")
        .counter("rumor_net_sent_payload_bytes_total", "Payload bytes sent, in the coding of their link."),
    figure<&Counters::sent_canonical_bytes>("sent_canonical_bytes"),
    figure<&Counters::updates_received>("updates_received").shown("updates received", Form::count)
        .counter("rumor_updates_received_total", "Updates received that were new."),
    figure<&Counters::updates_duplicate>("updates_duplicate").shown("duplicates", Form::count)
        .counter("rumor_updates_duplicate_total", "Updates received that were known already."),
    figure<&Counters::updates_invalid>("updates_invalid").shown("refused", Form::fault)
        .counter("rumor_updates_invalid_total", "Updates refused."),
    figure<&Counters::updates_lost>("updates_lost").shown("lost", Form::fault)
        .gauge("rumor_lost_updates", "Updates applied here that no peer holds any more."),
    figure<&Counters::snapshots_installed>("snapshots_installed").shown("snapshots installed", Form::fault),
};

// One admitted link, for status pages.
struct PeerInfo {
  NodeId node;
  std::string address;
  bool dialled_by_us = false;
  std::uint64_t updates = 0;  // of its last digest
  bool digest_known = false;  // a digest of it has arrived
  bool digest_equal = false;  // it is equal to ours now; with own models: to that of its copy here
  bool finished = false;      // it trains no more, as it said
  std::uint64_t sent_bytes = 0, received_bytes = 0;
  std::optional<Duration> round_trip;  // of the last ping answered
  Coding coding = Coding::canonical;   // of the next payload sent there, unless it is large
  Duration age{};                      // since the connection came up
};

// A link to a peer of a neighbouring stage.
struct StageLinkInfo {
  NodeId node;
  bool is_full = false;  // more waits to be sent there than the driver wants
  std::optional<Duration> round_trip;  // of the last ping answered
};

// Whether others can dial us.
struct Reach {
  std::optional<TimePoint> asked_at;  // when neighbours were last asked to try
  std::optional<NodeId> by;           // the node that dialled us last
  TimePoint at{};                     // and when
};

// An address to dial in a later life. The state directory keeps it, so that every seed may die.
struct KnownAddress {
  NodeId node;
  std::string address;
};

// A member of a pipeline, as its record and our links show it (PIPELINE.md 11).
struct StageMember {
  NodeId node;
  std::uint32_t stage = 0;
  std::vector<std::string> addresses;
  bool linked = false;
  TimePoint heard_at{};
};

}  // namespace rumor::gossip
