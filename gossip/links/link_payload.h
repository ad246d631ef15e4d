// Payloads on a link: in which coding they travel, and how they are put together again (PROTOCOL.md 4, 6.2).
//
// Thread: one owner, as Protocol. State is in the Link.
#pragma once

#include "gossip/links/core.h"

namespace rumor::gossip {

// How the next payload of so many bytes goes over this link.
Coding coding_for(const Core& core, const Link& link, std::size_t payload_bytes);

// DATA, and DATA_MORE as it takes, of the stream that has this index on the link.
void send_update(Core& core, Link& link, std::uint32_t index, const StoredUpdate& update);

// The canonical payload. Errors: Errc::corrupt.
Result<Bytes> canonical_payload(Link& link, const Data& whole);

// What has come of an update is kept until it is whole: not for longer than this without a piece.
constexpr Duration piece_progress = 60s;

// DATA that goes on in DATA_MORE begins, or the link is closed for it. Requires: data.more.
void begin_arriving(Core& core, Link& link, const Data& data, bool lacked);
// Adds a piece. The whole once this was the last; nothing before, or when the link is closed for it.
std::optional<Arriving> go_on_arriving(Core& core, Link& link, const DataMore& piece);
// Closes a link of which no piece comes. When to look again; never: nothing is arriving.
TimePoint watch_arriving(Core& core, Link& link);

}  // namespace rumor::gossip
