// The table of all frames (gossip/PROTOCOL.md, 4): one row for each type.
//
// A new frame is a row here, its struct in wire.h, and its two conversions: encode() in wire_encode.cc and read() in
// wire.cc for a protobuf body, encode() and decode_raw() in wire_raw.cc for any other. Everything else that depends on
// the type (the enum, the variant, sizes, lanes, prices, and which exchange uses it) follows from the row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gossip/contract/events.h"
#include "runtime/base/limits.h"

namespace rumor::gossip {

// The part that answers a frame. A frame of another exchange than the run's has no place in the run.
enum class FrameUse : std::uint8_t {
  session,    // Overlay, in every run
  exchanges,  // the run's exchange, whichever it is
  broadcast,  // gossip/broadcast only
  copies,     // gossip/copies only
  pipeline,   // gossip/pipeline, between stages; within a stage they mean nothing and are skipped
};

// Whether a frame uses up the link's share of control work (limits::control_per_second).
enum class FramePrice : std::uint8_t {
  by_size,
  none,  // the receiver has asked for it, or counts it itself
};

// Largest frames.
namespace frame_bytes {
inline constexpr std::size_t small = 1 << 10, keys = 16 << 10, records = 256 << 10;
inline constexpr std::size_t piece = limits::piece_bytes_max + small, whole = limits::frame_bytes_max;
inline constexpr std::size_t state = limits::state_bytes_max / limits::piece_bytes_max * Hash256::size + small;
static_assert(state >= piece && state <= whole);
static_assert(keys >= limits::keys_per_frame_max * (3 + 6 + 6) + 64);
static_assert(records >= limits::records_per_frame_max *
                                 (160 + limits::admit_bytes_max +
                                  limits::addresses_per_record_max * (limits::address_bytes_max + 4)) +
                             2 * small);
}  // namespace frame_bytes

// Numbers travel: never renumber. Ascending. Types from 128 on may be skipped by nodes that do not know them.
// The body is the protobuf message that carries the struct, or Raw.
//  enumerator, number, struct, body, largest frame, use, price, lane
#define RUMOR_FRAME_TABLE(ROW)                                                                                   \
  ROW(hello, 1, Hello, pb::Hello, limits::hello_bytes_max, session, by_size, control)                            \
  ROW(reject, 2, Reject, pb::Reject, frame_bytes::records, session, by_size, control)                            \
  ROW(bye, 3, Bye, pb::Bye, frame_bytes::records, session, by_size, control)                                     \
  ROW(ping, 4, Ping, pb::Ping, frame_bytes::small, session, by_size, control)                                    \
  ROW(pong, 5, Pong, pb::Ping, frame_bytes::small, session, by_size, control)                                    \
  ROW(peers, 6, Peers, pb::Peers, frame_bytes::records, session, by_size, control)                               \
  ROW(stream, 7, StreamDef, pb::StreamDef, frame_bytes::small, broadcast, none, control)                         \
  ROW(have, 8, Have, pb::Keys, frame_bytes::keys, broadcast, by_size, live)                                      \
  ROW(want, 9, Want, pb::KeyRanges, frame_bytes::keys, broadcast, by_size, control)                              \
  ROW(subscribe, 10, Subscribe, pb::Subscribe, frame_bytes::small, broadcast, by_size, control)                  \
  ROW(data, 11, Data, Raw, frame_bytes::piece, exchanges, none, live)                                            \
  ROW(digest, 12, Digest, pb::Digest, frame_bytes::small, exchanges, by_size, control)                           \
  ROW(vector, 13, Vector, Raw, frame_bytes::whole, broadcast, by_size, control)                                  \
  ROW(not_available, 14, NotAvailable, pb::KeyRanges, frame_bytes::keys, broadcast, by_size, control)            \
  ROW(snapshot_ask, 15, SnapshotAsk, pb::SnapshotAsk, frame_bytes::small, broadcast, by_size, control)           \
  ROW(snapshot_offer, 16, SnapshotOffer, pb::SnapshotOffer, frame_bytes::small, broadcast, by_size, control)     \
  ROW(snapshot_want, 17, SnapshotWant, pb::SnapshotWant, frame_bytes::small, broadcast, by_size, control)        \
  ROW(snapshot_data, 18, SnapshotData, Raw, frame_bytes::piece, broadcast, none, bulk)                           \
  ROW(revoke, 19, Revocations, pb::Revocations, frame_bytes::records, broadcast, by_size, control)               \
  ROW(headers, 20, Headers, pb::Headers, frame_bytes::records, broadcast, by_size, control)                      \
  ROW(equivocation, 21, Equivocation, pb::Equivocation, frame_bytes::small, broadcast, by_size, control)         \
  ROW(data_more, 22, DataMore, Raw, frame_bytes::piece, exchanges, none, live)                                   \
  ROW(snapshot_join, 23, SnapshotJoin, Raw, frame_bytes::whole, broadcast, by_size, control)                     \
  ROW(decline, 24, Decline, pb::Decline, frame_bytes::small, broadcast, by_size, control)                        \
  ROW(invite, 128, Invite, pb::Invite, frame_bytes::small, session, by_size, control)                            \
  ROW(copy_ask, 129, CopyAsk, Raw, frame_bytes::small, copies, by_size, control)                                 \
  ROW(copy, 130, Copy, Raw, frame_bytes::piece, copies, none, live)                                              \
  ROW(buffers, 131, Buffers, Raw, frame_bytes::whole, broadcast, by_size, live)                                  \
  ROW(taken_back, 132, TakenBack, Raw, frame_bytes::keys, broadcast, by_size, control)                           \
  ROW(state_want, 133, StateWant, Raw, frame_bytes::small, broadcast, by_size, control)                          \
  ROW(state_data, 134, StateData, Raw, frame_bytes::state, broadcast, none, bulk)                                \
  ROW(charge, 135, Charge, Raw, frame_bytes::small, broadcast, by_size, control)                                 \
  ROW(stage, 136, Stage, pb::Stage, frame_bytes::small, pipeline, by_size, control)                              \
  ROW(credit, 137, Credit, pb::Credit, frame_bytes::small, pipeline, by_size, control)                           \
  ROW(activations, 138, Activations, Raw, frame_bytes::piece, pipeline, none, live)                              \
  ROW(gradients, 139, Gradients, Raw, frame_bytes::piece, pipeline, none, live)                                  \
  ROW(outcome, 140, Outcome, pb::Outcome, frame_bytes::small, pipeline, by_size, live)                           \
  ROW(over, 141, Over, pb::Over, frame_bytes::small, pipeline, by_size, control)

enum class FrameType : std::uint8_t {
#define RUMOR_ROW(name, number, ...) name = number,
  RUMOR_FRAME_TABLE(RUMOR_ROW)
#undef RUMOR_ROW
  skipped_from,  // this number and all above it are unknown here, and skipped
};

struct FrameRow {
  FrameType type;
  std::size_t bytes_max;  // 0: no frame has this type
  FrameUse use = FrameUse::session;
  FramePrice price = FramePrice::by_size;
  Lane lane = Lane::control;
};

inline constexpr FrameRow frame_rows[] = {
#define RUMOR_ROW(name, number, message, body, bytes_max, use, price, lane) \
  {FrameType::name, bytes_max, FrameUse::use, FramePrice::price, Lane::lane},
    RUMOR_FRAME_TABLE(RUMOR_ROW)
#undef RUMOR_ROW
};

// The row of the type; for a number that the table lacks, a row that says whether it may be skipped.
constexpr FrameRow frame_row(std::uint8_t number) {
  for (const FrameRow& row : frame_rows)
    if (row.type == static_cast<FrameType>(number)) return row;
  const bool skipped = number >= static_cast<std::uint8_t>(FrameType::skipped_from);
  return {static_cast<FrameType>(number), skipped ? limits::frame_bytes_max : 0};
}

// The most bytes a frame of this type may have; 0 for types that do not exist.
constexpr std::size_t frame_bytes_max_of(std::uint8_t type) { return frame_row(type).bytes_max; }

}  // namespace rumor::gossip
