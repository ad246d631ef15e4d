// The frames of a pipeline: what makes them valid, and the two that are not protobuf.
#include <algorithm>
#include <bit>
#include <utility>

#include "gossip/wire/wire_raw.h"
#include "runtime/base/check.h"
#include "runtime/base/limits.h"

namespace rumor::gossip {

namespace {

constexpr std::uint8_t border_goes_on = 1, border_begins = 2;

Invalid invalid_transfer(std::uint64_t transfer) {
  if (transfer == 0 || transfer > seq_max) return "a transfer out of range";
  return std::nullopt;
}

Invalid invalid_piece(std::uint64_t transfer, BytesView bytes) {
  if (bytes.empty() || bytes.size() > limits::piece_bytes_max) return "a piece of a wrong size";
  return invalid_transfer(transfer);
}

Invalid invalid_length(std::uint64_t all, BytesView piece, bool more) {
  if (all > limits::border_bytes_max) return "a border too long";
  if (all < piece.size() || (all > piece.size()) != more) return "a piece that does not fit its length";
  return std::nullopt;
}

void write_begin(ByteWriter& out, const ActivationsBegin& begin) {
  out.raw(begin.name.source.view());
  out.varint(begin.name.number);
  out.varint(begin.rows);
  out.varint(begin.label_bytes);
  out.varint(begin.bytes);
}

void write_begin(ByteWriter& out, const GradientsBegin& begin) {
  out.u32(std::bit_cast<std::uint32_t>(begin.loss));
  out.varint(begin.bytes);
}

// Writes a frame up to the bytes of the border.
template <class Piece>
Bytes border_head(const Piece& message) {
  RUMOR_CHECK(!message.invalid());
  ByteWriter out;
  out.u8(static_cast<std::uint8_t>(row_of<Piece>.type));
  out.u8(
      static_cast<std::uint8_t>((message.more ? border_goes_on : 0) | (message.begin ? border_begins : 0)));
  out.varint(message.transfer);
  if (message.begin) write_begin(out, *message.begin);
  return out.take();
}

template <class Piece>
Bytes whole_piece(const Piece& message) {
  Bytes frame = border_head(message);
  frame.insert(frame.end(), message.bytes.begin(), message.bytes.end());
  return frame;
}

template <class Piece, class Begin>
std::vector<OutFrame> border_pieces(std::uint64_t transfer, const Begin& begin,
                                    const std::shared_ptr<const Bytes>& all) {
  RUMOR_CHECK(begin.bytes == all->size() && begin.bytes > 0);
  std::vector<OutFrame> frames;
  for (std::size_t at = 0; at < all->size(); at += limits::piece_bytes_max) {
    Piece piece{.transfer = transfer};
    if (at == 0) piece.begin = begin;
    piece.bytes = BytesView(*all).subspan(at, std::min(limits::piece_bytes_max, all->size() - at));
    piece.more = at + piece.bytes.size() < all->size();
    OutFrame frame(border_head(piece));
    frame.shared = all;
    frame.begin = at;
    frame.count = piece.bytes.size();
    frames.push_back(std::move(frame));
  }
  return frames;
}

// The flags of a piece, and its transfer. False: unknown flags.
template <class Piece>
bool read_piece(ByteReader& in, Piece& message) {
  const std::uint8_t flags = in.u8();
  message.transfer = in.varint();
  message.more = (flags & border_goes_on) != 0;
  if ((flags & border_begins) != 0) message.begin.emplace();
  return flags <= (border_goes_on | border_begins);
}

template <class Piece>
Result<Frame> finish_piece(ByteReader& in, Piece message, bool known) {
  message.bytes = in.raw(in.remaining());
  if (in.failed() || !known) return malformed("cut short, or unknown flags");
  if (const Invalid reason = message.invalid()) return malformed(*reason);
  return Frame{message};
}

}  // namespace

Invalid Stage::invalid() const {
  if (pipeline.is_zero()) return "a pipeline without a name";
  if (stage == 0 || stage > stages || stages > limits::stages_max) return "a stage out of range";
  return std::nullopt;
}

Invalid Credit::invalid() const {
  if (limit > seq_max) return "a credit out of range";
  return std::nullopt;
}

Invalid Activations::invalid() const {
  if (begin) {
    if (begin->name.source.is_zero() || begin->name.number == 0 || begin->name.number > seq_max)
      return "a micro-batch without a name";
    if (begin->rows == 0) return "a micro-batch without rows";
    if (begin->label_bytes > begin->bytes) return "labels longer than the transfer";
    if (const Invalid reason = invalid_length(begin->bytes, bytes, more)) return reason;
  }
  return invalid_piece(transfer, bytes);
}

Invalid Gradients::invalid() const {
  if (begin)
    if (const Invalid reason = invalid_length(begin->bytes, bytes, more)) return reason;
  return invalid_piece(transfer, bytes);
}

Invalid Outcome::invalid() const {
  if (kind != Kind::counted && kind != Kind::dropped && kind != Kind::refused) return "an unknown outcome";
  return invalid_transfer(transfer);
}

Bytes encode(const Activations& message) {
  return whole_piece(message);
}
Bytes encode(const Gradients& message) {
  return whole_piece(message);
}

std::vector<OutFrame> encode_in_pieces(std::uint64_t transfer, const ActivationsBegin& begin,
                                       const std::shared_ptr<const Bytes>& all) {
  return border_pieces<Activations>(transfer, begin, all);
}

std::vector<OutFrame> encode_in_pieces(std::uint64_t transfer, const GradientsBegin& begin,
                                       const std::shared_ptr<const Bytes>& all) {
  return border_pieces<Gradients>(transfer, begin, all);
}

template <>
Result<Frame> decode_raw<Activations>(BytesView body) {
  ByteReader in(body);
  Activations message;
  const bool known = read_piece(in, message);
  if (message.begin) {
    message.begin->name.source = in.id<StreamId>();
    message.begin->name.number = in.varint();
    const std::uint64_t rows = in.varint();
    if (rows > limits::micro_batch_rows_max) return malformed("too many rows");
    message.begin->rows = static_cast<std::uint32_t>(rows);
    message.begin->label_bytes = in.varint();
    message.begin->bytes = in.varint();
  }
  return finish_piece(in, message, known);
}

template <>
Result<Frame> decode_raw<Gradients>(BytesView body) {
  ByteReader in(body);
  Gradients message;
  const bool known = read_piece(in, message);
  if (message.begin) {
    message.begin->loss = std::bit_cast<float>(in.u32());
    message.begin->bytes = in.varint();
  }
  return finish_piece(in, message, known);
}

}  // namespace rumor::gossip
