// Frames as structs, and their conversion to bytes and back (gossip/PROTOCOL.md, 4). No other room knows the encoding.
//
// A frame is a type byte and a body. encode() gives a whole frame. decode() accepts any bytes: it bounds the
// frame by its type before it parses, then checks every field. A decoded frame satisfies invalid() == nullopt.
//
// Thread: pure functions. Memory: Data, DataMore, SnapshotData, StateData, Copy, Buffers, Activations and Gradients
// hold views into the frame; all else is owned.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gossip/contract/events.h"
#include "gossip/contract/have_set.h"
#include "gossip/contract/update_store.h"
#include "gossip/wire/frame_table.h"
#include "gossip/wire/pipeline_frames.h"
#include "runtime/base/result.h"
#include "runtime/base/types.h"

namespace rumor::gossip {

inline constexpr std::uint32_t protocol_version_min = 1, protocol_version_max = 1;

// The reason why a message must not be used, or nothing.
using Invalid = std::optional<std::string_view>;

// ---- session and members ----

inline constexpr std::uint64_t record_number_max = std::uint64_t{1} << 48;

struct PeerRecord {
  NodeId node;
  std::uint64_t number = 0;  // the greater wins; 1 .. record_number_max
  std::vector<std::string> addresses;
  Signature signature{};  // the node's own (gossip/trust/signing.h), over all of the above
  Bytes admit = {};       // of a node that joined by a token (gossip/trust/admission.h), signed by others; else empty
  std::uint32_t stage = 0;  // that the node serves, covered by its signature; 0: its run is no stage of a pipeline
  bool operator==(const PeerRecord&) const = default;
  Invalid invalid() const;
};

struct Digest {
  ReplicaDigest replica;
  std::uint64_t table_hash = 0;
  bool finished = false;       // the sender trains no more
  bool reply = false;          // answer with yours at once
  std::uint64_t buffers = 0;   // hash of the BUFFERS that the sender holds; 0: of none
  bool operator==(const Digest&) const = default;
  Invalid invalid() const { return std::nullopt; }
};

struct Hello {
  std::uint32_t version_min = protocol_version_min, version_max = protocol_version_max;
  RunId run;
  std::string run_name;
  StreamId stream;
  PeerRecord self;
  Digest digest;
  bool lonely = false;  // fewer links than limits::links_low: please do not refuse
  bool errand = false;  // it comes for a trainer's state and leaves soon: please take it beside your other links
  std::uint32_t codings = codings_all;  // what it decodes: bit c for Coding c; others mean nothing yet
  std::uint64_t began = 0;  // when its process did, by its own clock: milliseconds since 1970
  PipelineId pipeline = {};  // zero: the run is no stage of a pipeline
  Invalid invalid() const;
};

struct Reject {
  enum class Code : std::uint32_t { other_run = 1, version = 2, full = 3, identity = 4, not_admitted = 5 };
  Code code = Code::full;
  std::string text;
  RunId run;             // the sender's
  std::string run_name;  // the sender's
  std::vector<PeerRecord> others;
  // With other_run: RunPart::hash of each part of the sender's run, and a note on the weights that it began with.
  std::vector<std::uint32_t> parts = {};
  Bytes start = {};
  Invalid invalid() const;
};

struct Bye {
  enum class Code : std::uint32_t { leaving = 1, surplus = 2, duplicate = 3 };
  Code code = Code::leaving;
  std::string text;
  std::vector<PeerRecord> others;
  Invalid invalid() const;
};

struct Ping {
  std::uint64_t nonce = 0;
  Invalid invalid() const { return std::nullopt; }
};
struct Pong {
  std::uint64_t nonce = 0;
  Invalid invalid() const { return std::nullopt; }
};

struct Peers {
  std::vector<PeerRecord> records;
  Invalid invalid() const;
};

// `from` cannot dial `to` and asks it to dial in its place.
struct Invite {
  NodeId to, from;
  Invalid invalid() const;
};

// ---- spreading ----

// Gives a stream its number on this link, as the sender counts.
struct StreamDef {
  std::uint32_t index = 0;
  StreamId stream;
  std::optional<NodeId> origin;
  Invalid invalid() const;
};

struct WireKey {
  std::uint32_t stream = 0;  // index
  std::uint64_t seq = 0;
  bool operator==(const WireKey&) const = default;
};
struct Have {
  std::vector<WireKey> keys;
  Invalid invalid() const;
};

struct WireRange {
  std::uint32_t stream = 0;  // index
  SeqRange range;
  bool operator==(const WireRange&) const = default;
};
// At most limits::keys_per_frame_max numbers in all.
struct Want {
  std::vector<WireRange> ranges;
  Invalid invalid() const;
};
struct NotAvailable {
  std::vector<WireRange> ranges;
  Invalid invalid() const;
};

struct Subscribe {
  std::uint32_t stream = 0;
  bool on = false;
  Invalid invalid() const { return std::nullopt; }
};

// The sender gives more than it takes, and no longer pushes the stream to the receiver.
struct Decline {
  std::uint32_t stream = 0;
  Invalid invalid() const { return std::nullopt; }
};

// header.key.stream, header.origin and header.payload_hash are zero: the receiver fills them in, from its table
// of the link's streams and from the payload.
struct Data {
  std::uint32_t stream = 0;
  UpdateHeader header;
  BytesView payload;  // in this coding; or as much of it as fits one frame
  Coding coding = Coding::canonical;
  bool more = false;  // the rest follows in DATA_MORE
  Invalid invalid() const;
};

// A further piece of the payload that this link's last DATA began.
struct DataMore {
  BytesView bytes;
  bool more = false;
  Invalid invalid() const;
};

// ---- repair and joining ----

struct Vector {
  HaveSet part;
  bool more = false;
  bool reply = false;
  Invalid invalid() const;
};

// `updates` and `have_hash` as in the asker's digest.
struct SnapshotAsk {
  std::uint64_t updates = 0;
  bool mutual = false;
  Hash256 have_hash;
  Invalid invalid() const { return std::nullopt; }
};

// Asks another donor than the first for chunks of this cut: the manifest's hash and its names.
struct SnapshotJoin {
  Hash256 hash;
  HaveSet names;
  Invalid invalid() const { return std::nullopt; }
};

// number 0: refused, and why. `hash` and `manifest_bytes` are of the manifest (gossip/contract/snapshot_port.h).
struct SnapshotOffer {
  std::uint32_t number = 0;
  Hash256 hash;
  std::uint64_t bytes = 0, updates = 0, mean_update_bytes = 0;
  std::string refusal;
  std::uint64_t manifest_bytes = 0, period = 0;
  bool later = false;  // refused for the moment only
  Invalid invalid() const;
};

// Part 0 is the manifest, part n + 1 is chunk n. Done: no more of this offer is wanted.
struct SnapshotWant {
  std::uint32_t number = 0, part = 0;
  bool done = false;
  Invalid invalid() const { return std::nullopt; }
};

struct SnapshotData {
  std::uint32_t number = 0, part = 0;
  BytesView bytes;
  bool more = false;  // of this part
  Invalid invalid() const;
};

// ---- public copies ----

// The newest update in the sender's copy of the receiver, or nothing: then the sender wants the whole copy.
struct CopyAsk {
  std::optional<std::uint64_t> seq;
  Invalid invalid() const;
};

struct CopyBegin {
  std::uint64_t seq = 0, bytes = 0;  // the newest update in the copy; the length of all pieces
};
// A piece of the sender's copy.
struct Copy {
  using Begin = CopyBegin;
  std::optional<CopyBegin> begin;  // of the first piece
  BytesView bytes;
  bool more = false;
  Invalid invalid() const;
};

// ---- buffers ----

// A node's own: values that belong to the model and are not learned by gradients (PROTOCOL.md 6.15).
struct Buffers {
  NodeId node;
  std::uint64_t number = 0;    // the greater wins; 1 .. record_number_max
  std::uint64_t progress = 0;  // samples that the run had made, as far as the node knew
  Signature signature{};       // the node's own, over all the rest
  BytesView values;            // mean nothing to the protocol
  Invalid invalid() const;
};

// ---- taking back ----

// The owner's.
struct Revocations {
  std::vector<Revocation> list;
  Invalid invalid() const;
};

// Another than the owner's.
struct TakenBack {
  Revocation revocation;
  Invalid invalid() const;
};

// ---- audits (PROTOCOL.md 6.16) ----

// Asks for the trainer's state before this update. Part 0 is the list of hashes, part n + 1 is piece n.
struct StateWant {
  static constexpr std::uint32_t parts_max = limits::state_bytes_max / limits::piece_bytes_max;
  UpdateKey update;
  std::uint32_t part = 0;
  Invalid invalid() const;
};

// Empty: refused.
struct StateData {
  UpdateKey update;
  std::uint32_t part = 0;
  BytesView bytes;
  Invalid invalid() const;
};

// The sender has made this update of the receiver again, and got another.
struct Charge {
  UpdateKey update;
  Invalid invalid() const;
};

// ---- evidence ----

using HalfHash = Id<struct HalfHashTag, 16>;  // of SHA-256

// Hashes of the headers that the sender holds under numbers first, first + 1, ...
struct Headers {
  static constexpr std::size_t hashes_max = 2'048;
  std::uint32_t stream = 0;  // index
  std::uint64_t first = 0;
  std::vector<HalfHash> hashes;
  Invalid invalid() const;
};

// A header that the sender holds, or two of one name: proof that their origin signed two updates under it.
struct Equivocation {
  UpdateHeader one;
  std::optional<UpdateHeader> other;
  Invalid invalid() const;
};

// A frame of a type from FrameType::skipped_from on.
struct Skipped {};

using Frame = std::variant<
#define RUMOR_ROW(name, number, message, ...) message,
    RUMOR_FRAME_TABLE(RUMOR_ROW)
#undef RUMOR_ROW
        Skipped>;

// The table's row of a struct.
template <class Message>
inline constexpr FrameRow row_of = frame_row(0);
#define RUMOR_ROW(name, number, message, ...) \
  template <>                                 \
  inline constexpr FrameRow row_of<message> = frame_row(number);
RUMOR_FRAME_TABLE(RUMOR_ROW)
#undef RUMOR_ROW

// Each returns a whole frame. Requires: message.invalid() == nullopt.
#define RUMOR_ROW(name, number, message, ...) Bytes encode(const message& from);
RUMOR_FRAME_TABLE(RUMOR_ROW)
#undef RUMOR_ROW

// Encodes a payload of any length: DATA, then as many DATA_MORE as it takes, which share its bytes. Ignores
// message.payload. Requires: message.more is false.
std::vector<OutFrame> encode_in_pieces(Data message, const std::shared_ptr<const Bytes>& payload);

// Encodes the piece of a copy that begins at `at`; it shares the copy's bytes. Requires: at < copy->size().
OutFrame encode_piece(const std::shared_ptr<const Bytes>& copy, std::size_t at, std::uint64_t seq);

// Encode a transfer, or the answer to one: a frame for each piece, which shares the bytes. Requires: begin.bytes is
// all->size(), at least 1.
std::vector<OutFrame> encode_in_pieces(std::uint64_t transfer, const ActivationsBegin& begin,
                                       const std::shared_ptr<const Bytes>& all);
std::vector<OutFrame> encode_in_pieces(std::uint64_t transfer, const GradientsBegin& begin,
                                       const std::shared_ptr<const Bytes>& all);

// Errors: Errc::corrupt (malformed, with the reason), Errc::limit (too long for its type).
Result<Frame> decode(BytesView frame);

}  // namespace rumor::gossip
