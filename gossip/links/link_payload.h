// Payloads on a link: chooses their coding, cuts them in pieces, and joins pieces again (PROTOCOL.md 4, 6.2).
//
// Thread: one owner, as Protocol. State is in the Link.
#pragma once

#include "gossip/links/core.h"

namespace rumor::gossip {

// The coding of the next payload on this link, given its length.
Coding coding_for(const Core& core, const Link& link, std::size_t payload_bytes);

// Sends DATA, and as many DATA_MORE as it takes. `index` is of the stream on this link.
void send_update(Core& core, Link& link, std::uint32_t index, const StoredUpdate& update);

// Returns the canonical payload. Errors: Errc::corrupt.
Result<Bytes> canonical_payload(Link& link, const Data& whole);

// The pieces of an update are kept until it is whole, but no longer than this without a further piece.
constexpr Duration piece_progress = 60s;

// Keeps the first piece of an update. Requires: data.more; no other update is arriving.
void begin_arriving(Core& core, Link& link, const Data& data, bool lacked);
// Adds a piece. Returns the whole after the last one; nothing before that, or when this closes the link.
std::optional<Arriving> go_on_arriving(Core& core, Link& link, const DataMore& piece);
// Closes a link that sends no further piece. Returns when to look again; never: nothing is arriving.
TimePoint watch_arriving(Core& core, Link& link);

}  // namespace rumor::gossip
