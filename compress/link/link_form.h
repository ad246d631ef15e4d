// Link form: the bytes of an update as they cross one link (compress/FORMAT.md, chapter 6).
//
// The canonical payload is hashed and signed; each link may send it in fewer bytes. A link-form message is either the
// canonical payload itself, or it has the same head and counts and a mode for each segment, the smallest that the link
// allows. It is never longer than the canonical payload. Its bytes need not be unique: a receiver decodes, encodes
// canonically and compares the hash of the update's record.
//
// Use: both ends agree on a choice when they connect. (By the link's rate: ADAPT pays if a saved bit takes longer to
// send than to compute, below some 100 Mbit/s.) The sender calls to_link_form() for each update. The receiver calls
// from_link_form() in the same order and checks the hash of the result. With LinkForm::link each direction of a
// connection has one LinkHistory at either end, which sees every update that crosses in this form, in order. It ends
// with the connection, and after an error.
//
// Thread: plain functions; a LinkHistory has one owner. Work is spread over threads if the options say so.
#pragma once

#include <cstdint>
#include <vector>

#include "compress/link/adapt.h"
#include "compress/payload/segment.h"
#include "compress/payload/update.h"

namespace rumor::compress {

// The modes that a message may use besides RAW, BITMAP and RICE. Peers exchange these numbers: never renumber.
enum class LinkForm : std::uint8_t {
  canonical = 0,   // the canonical payload as it is: for fast links
  adapt = 1,  // ADAPT: no memory of earlier updates
  link = 2,   // LINK: both ends keep a history
};

// decode_link_form(encode_link_form(x)) == x, if history is at both ends null or has seen the same updates.
// history: null unless `choice` is link; then it remembers `update`.
// Requires: as encode().
Bytes encode_link_form(const ParamLayout& layout, const SparseUpdate& update, LinkForm choice,
                       LinkHistory* history, const CodecOptions& options = {});

// Accepts every choice; LINK segments only with a history, which then remembers the update.
// Work and memory are linear in message.size() and, for ADAPT and LINK, in the columns of tensors with
// entries. Errors: Errc::corrupt; the history has seen nothing then, and the other end's has: end the link.
Result<SparseUpdate> decode_link_form(const ParamLayout& layout, BytesView message, LinkHistory* history,
                                      const CodecOptions& options = {});

// Converts a canonical payload to a link-form message and back. A payload that travels unchanged is not read, unless
// a history must remember it; decode() checks it later.
// Errors: Errc::corrupt for bytes that are not a payload, or not a message.
Result<Bytes> to_link_form(const ParamLayout& layout, BytesView payload, LinkForm choice,
                           LinkHistory* history, const CodecOptions& options = {});
Result<Bytes> from_link_form(const ParamLayout& layout, BytesView message, LinkHistory* history,
                             const CodecOptions& options = {});

// Every segment in one mode, however long that makes it: for tests and measurements. LINK needs a history,
// which does not remember the update. Requires: entries, as encode().
Bytes encode_link_form_in(const ParamLayout& layout, const SparseUpdate& update, SegmentMode mode,
                          const LinkHistory* history);

// The mode of each segment of a message, for people and statistics; empty for an update without entries and
// for bytes whose head is not that of a message. Bodies are not looked at.
std::vector<SegmentMode> link_form_modes(const ParamLayout& layout, BytesView message);

}  // namespace rumor::compress
