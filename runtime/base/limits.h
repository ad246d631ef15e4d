// Every maximum of the program, in one place, related by static_asserts.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rumor::limits {

// Model. A position must fit 31 bits so that a sign may share a word with it.
inline constexpr std::uint32_t params_max = 0x7fff'ffff;
inline constexpr std::size_t tensors_max = 65'536;
inline constexpr std::size_t tensor_name_bytes_max = 256, tensor_rank_max = 8;

// Wire. A frame is checked before its body is read. Payloads and snapshots, which may be long, travel in pieces, so
// that no frame occupies a link for long.
inline constexpr std::size_t frame_bytes_max = 1 << 20;
inline constexpr std::size_t piece_bytes_max = 64 << 10;  // of a payload or a snapshot in one frame
inline constexpr std::size_t payload_bytes_max = 8 << 20;
inline constexpr std::size_t hello_bytes_max = 8 << 10;  // all that is read before a link is admitted
inline constexpr std::size_t run_parts_max = 1024, start_note_bytes_max = 64;  // what a rejection tells of a run
inline constexpr std::size_t snapshot_chunk_bytes = 1 << 20;                              // as it is hashed
inline constexpr std::size_t packed_chunk_bytes_max = snapshot_chunk_bytes + (16 << 10);  // as it travels
inline constexpr std::size_t snapshot_bytes_max = std::size_t{16} << 30;
inline constexpr std::size_t manifest_bytes_max = 4 << 20;   // names and the hashes of all chunks
inline constexpr std::size_t keys_per_frame_max = 512;       // in HAVE and WANT
inline constexpr std::size_t ranges_per_frame_max = 16'384;  // in VECTOR
inline constexpr std::size_t records_per_frame_max = 64;
inline constexpr std::size_t addresses_per_record_max = 8;
inline constexpr std::size_t address_bytes_max = 256;

// Membership and links.
inline constexpr std::size_t members_max = 4096;
inline constexpr std::size_t links_low = 4, links_target = 8, links_high = 12;
inline constexpr std::size_t streams_max = 65'536;
inline constexpr std::size_t vector_ranges_max = 2 * streams_max;  // of which a frame holds ranges_per_frame_max

// Strangers: connections that have not proven a key, in all and from one address; bytes of a link before it is
// admitted are hello_bytes_max.
inline constexpr std::size_t unproven_max = 64, unproven_per_address_max = 4;
inline constexpr std::size_t connections_max = 512;
inline constexpr std::size_t greeting_max = 64;  // have proven a key, and are not admitted yet

// Bounds of one admitted link (PROTOCOL.md 8): streams of which we hold nothing, missing keys that it named first,
// announcements it could not keep beyond what it gave, control frames a second.
inline constexpr std::size_t streams_per_link_max = 4'096, missing_max = 65'536, missing_per_link_max = 4'096;
inline constexpr std::uint64_t broken_announcements_max = 4'096;
// Buffers that all peers share as means: of one node, nodes, bytes of all.
inline constexpr std::size_t buffers_bytes_max = frame_bytes_max - 1'024, buffers_nodes_max = 1'024;
inline constexpr std::size_t buffers_all_bytes_max = 64 << 20;
inline constexpr std::uint64_t control_burst = 16'384, control_per_second = 2'048, control_unit_bytes = 256;
// Bounds of all links together: sets of names beyond our own, bytes that wait to leave. Beyond them the link with the
// largest share is closed.
inline constexpr std::size_t names_bytes_max = 64 << 20;
inline constexpr std::size_t link_queue_bytes_max = 24 << 20, queues_bytes_max = 64 << 20;

// Pipelines: stages of a model; rows of a micro-batch; bytes of a transfer; by how much one CREDIT may rise; names of
// counted micro-batches that a replica remembers.
inline constexpr std::size_t stage_links_target = 4, stage_links_high = 12;  // of a peer to another stage
inline constexpr std::uint32_t stages_max = 1'024, micro_batch_rows_max = 1 << 20;
inline constexpr std::size_t border_bytes_max = 64 << 20;
inline constexpr std::uint64_t credit_step_max = 1'024;
inline constexpr std::size_t counted_names_max = 4'096;

// Admission: keys in an allowlist file and its bytes; bytes of a token in a greeting and in a record.
inline constexpr std::size_t allowed_keys_max = 65'536, allow_file_bytes_max = 16 << 20;
inline constexpr std::size_t admit_bytes_max = 512, token_text_max = 1024;

// The record before an update that says how it was made (runtime/AUDIT.md).
inline constexpr std::size_t record_bytes_max = 256 << 10;
// A trainer's state, as auditors fetch it.
inline constexpr std::size_t state_bytes_max = 256 << 20;

// Revocations of a run, and updates they may take back.
inline constexpr std::size_t revocations_max = 1'024;

// Checkpoints of a large model come less often than asked for: making one stops training for its copy.
inline constexpr double checkpoint_bytes_per_second = 10 << 20;

// Back-pressure: bytes queued on one link before pushes to it stop, and before they resume.
inline constexpr std::size_t link_backlog_high = 1 << 20, link_backlog_low = 256 << 10;

// The largest payload that is coded anew for a slow link. It costs each side some 30 ns a byte of its protocol thread,
// during which neither trains on: 30 ms for this much.
inline constexpr std::size_t recode_bytes_max = 1 << 20;

// Updates kept for late peers: by bytes without a disk; in memory because a disk did not take them; by bytes in files
// (the default; the run file may say less or more), in one file; by number.
inline constexpr std::size_t log_bytes_max = 256 << 20, log_cache_bytes_max = 64 << 20;
inline constexpr std::size_t log_file_bytes_max = std::size_t{8} << 30, log_segment_bytes = 64 << 20;
inline constexpr std::size_t log_updates_max = 262'144;

// The most logged updates that are taken back to make a cut of an earlier moment.
inline constexpr std::size_t cut_undo_bytes_max = 64 << 20, cut_undo_updates_max = 4'096;

// Own updates a peer may have in flight in its view; older ones count as answered.
inline constexpr std::size_t in_flight_max = 256;

static_assert(piece_bytes_max + 1024 <= frame_bytes_max);
static_assert(snapshot_bytes_max / snapshot_chunk_bytes * 32 < manifest_bytes_max / 2);
static_assert(hello_bytes_max < frame_bytes_max);
static_assert(links_low <= links_target && links_target <= links_high);
static_assert(link_backlog_low < link_backlog_high);
static_assert(links_high * streams_per_link_max < streams_max);
static_assert(links_high * missing_per_link_max < missing_max);
static_assert(link_backlog_high + 2 * payload_bytes_max < link_queue_bytes_max);

}  // namespace rumor::limits
