// The frames of public copies: COPY_ASK and COPY.
#include <algorithm>

#include "gossip/wire/wire_raw.h"
#include "runtime/base/check.h"
#include "runtime/base/limits.h"

namespace rumor::gossip {

namespace {

constexpr std::uint8_t ask_holds = 1;
constexpr std::uint8_t copy_goes_on = 1, copy_begins = 2;

// Writes a frame up to the bytes of the copy.
Bytes head_of(const Copy& message) {
  RUMOR_CHECK(!message.invalid());
  ByteWriter out;
  out.u8(static_cast<std::uint8_t>(FrameType::copy));
  out.u8(static_cast<std::uint8_t>((message.more ? copy_goes_on : 0) | (message.begin ? copy_begins : 0)));
  if (message.begin) {
    out.varint(message.begin->seq);
    out.varint(message.begin->bytes);
  }
  return out.take();
}

}  // namespace

Invalid CopyAsk::invalid() const {
  if (seq && *seq > seq_max) return "a sequence number out of range";
  return std::nullopt;
}

Invalid Copy::invalid() const {
  if (bytes.empty() || bytes.size() > limits::piece_bytes_max) return "a piece of a wrong size";
  if (begin && begin->seq > seq_max) return "a sequence number out of range";
  if (begin && begin->bytes < bytes.size()) return "a piece longer than its copy";
  return std::nullopt;
}

Bytes encode(const CopyAsk& message) {
  RUMOR_CHECK(!message.invalid());
  ByteWriter out;
  out.u8(static_cast<std::uint8_t>(FrameType::copy_ask));
  out.u8(message.seq ? ask_holds : 0);
  out.varint(message.seq.value_or(0));
  return out.take();
}

template <>
Result<Frame> decode_raw<CopyAsk>(BytesView body) {
  ByteReader in(body);
  const std::uint8_t flags = in.u8();
  const std::uint64_t seq = in.varint();
  if (!in.done() || flags > ask_holds) return malformed("cut short, or unknown flags");
  if (flags == 0 && seq != 0) return malformed("an update of a copy that is not held");
  CopyAsk message;
  if (flags == ask_holds) message.seq = seq;
  if (const Invalid reason = message.invalid()) return malformed(*reason);
  return Frame{message};
}

Bytes encode(const Copy& message) {
  Bytes frame = head_of(message);
  frame.insert(frame.end(), message.bytes.begin(), message.bytes.end());
  return frame;
}

template <>
Result<Frame> decode_raw<Copy>(BytesView body) {
  ByteReader in(body);
  Copy message;
  const std::uint8_t flags = in.u8();
  if ((flags & copy_begins) != 0) {
    message.begin.emplace();
    message.begin->seq = in.varint();
    message.begin->bytes = in.varint();
  }
  message.more = (flags & copy_goes_on) != 0;
  message.bytes = in.raw(in.remaining());
  if (in.failed() || flags > (copy_goes_on | copy_begins)) return malformed("cut short, or unknown flags");
  if (const Invalid reason = message.invalid()) return malformed(*reason);
  return Frame{message};
}

OutFrame encode_piece(const std::shared_ptr<const Bytes>& copy, std::size_t at, std::uint64_t seq) {
  OutFrame frame;
  frame.shared = copy;
  frame.begin = at;
  frame.count = std::min(copy->size() - at, limits::piece_bytes_max);
  Copy piece{std::nullopt, frame.tail(), at + frame.count < copy->size()};
  if (at == 0) piece.begin = Copy::Begin{seq, copy->size()};
  frame.head = head_of(piece);
  return frame;
}

}  // namespace rumor::gossip
