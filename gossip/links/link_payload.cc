#include "gossip/links/link_payload.h"

namespace rumor::gossip {

namespace {
// A link with a longer round trip, or with unsent bytes not long ago, carries payloads in fewer bytes.
constexpr Duration slow_round_trip = 4ms, slow_after_backlog = 60s;

void add_piece(Core& core, Link& link, BytesView piece) {
  link.data_at = core.now;
  if (link.arriving->lacked) link.progress_at = core.now;
  link.arriving->bytes.insert(link.arriving->bytes.end(), piece.begin(), piece.end());
}
}  // namespace

// The rule decides, as far as the other side can decode.
Coding coding_for(const Core& core, const Link& link, std::size_t payload_bytes) {
  Coding wanted = Coding::canonical;
  switch (core.options.coding) {
    case CodingRule::canonical:
      break;
    case CodingRule::adapt:
      wanted = Coding::adapt;
      break;
    case CodingRule::link:
      wanted = Coding::link;
      break;
    case CodingRule::automatic:
      if (payload_bytes > limits::recode_bytes_max) break;
      if ((link.round_trip && *link.round_trip >= slow_round_trip) || link.backlogged ||
          (link.backlog_ended != never && core.now - link.backlog_ended < slow_after_backlog))
        wanted = Coding::link;
  }
  while ((link.codings >> static_cast<unsigned>(wanted) & 1) == 0 && wanted != Coding::canonical)
    wanted = static_cast<Coding>(static_cast<unsigned>(wanted) - 1);
  return wanted;
}

void send_update(Core& core, Link& link, std::uint32_t index, const StoredUpdate& update) {
  const Coding coding = coding_for(core, link, update.payload->size());
  std::shared_ptr<const Bytes> payload = update.payload;
  if (coding != Coding::canonical)
    payload = std::make_shared<const Bytes>(link.coder->encode(coding, *update.payload));
  core.counters.sent_payload_bytes += payload->size();
  core.counters.sent_canonical_bytes += update.payload->size();
  for (OutFrame& frame : encode_in_pieces({index, update.header, {}, coding}, payload))
    core.send(link, std::move(frame));
}

Result<Bytes> canonical_payload(Link& link, const Data& whole) {
  if (whole.coding == Coding::canonical) return Bytes(whole.payload.begin(), whole.payload.end());
  return link.coder->decode(whole.coding, whole.payload);
}

void begin_arriving(Core& core, Link& link, const Data& data, bool lacked) {
  link.arriving = Arriving{data, {}, lacked};
  link.arriving->head.more = false;
  link.arriving->bytes.reserve(limits::payload_bytes_max);  // grown step by step it would be twice as large
  add_piece(core, link, data.payload);
}

std::optional<Arriving> go_on_arriving(Core& core, Link& link, const DataMore& piece) {
  if (!link.arriving) {
    core.ban(link, "goes on with an update that it has not begun");
    return std::nullopt;
  }
  if (link.arriving->bytes.size() + piece.bytes.size() > limits::payload_bytes_max) {
    core.ban(link, "sends an update that is too long");
    return std::nullopt;
  }
  add_piece(core, link, piece.bytes);
  if (piece.more) return std::nullopt;
  return std::exchange(link.arriving, std::nullopt);
}

TimePoint watch_arriving(Core& core, Link& link) {
  if (!link.arriving) return never;
  const TimePoint deadline = link.data_at + piece_progress;
  if (core.now >= deadline) core.shun(link, "begins an update and does not go on with it");
  return deadline;
}

}  // namespace rumor::gossip
