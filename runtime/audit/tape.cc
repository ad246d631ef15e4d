#include "runtime/audit/tape.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <utility>

#include "runtime/base/limits.h"

namespace rumor::audit {

namespace {

constexpr std::uint8_t version = 1;
enum Flag : std::uint8_t {
  starts = 1,
  whole_view = 2,
  brakes = 4,
  held_back = 8,
  flushes = 16,
  other_weights = 32,
  begins_segment = 64,
  drops_residual = 128
};
constexpr double usual_weight = 0.5;  // of the in-flight view
constexpr std::uint64_t batches_max = 1024;  // of a step

Error damaged(const char* why) { return {Errc::corrupt, std::string("a step record ") + why}; }

double read_f64(ByteReader& in) { return std::bit_cast<double>(in.u64()); }
void write_f64(double value, ByteWriter& out) { out.u64(std::bit_cast<std::uint64_t>(value)); }

void write_start(const TapeStart& start, ByteWriter& out) {
  out.u8(version);
  out.u8(start.repeatable ? 0 : 1);
  if (!start.repeatable) return;
  out.varint(start.shard);
  out.varint(start.shards);
  out.u8(static_cast<std::uint8_t>(start.emit));
  out.u8(static_cast<std::uint8_t>(start.scope));
  out.u8(start.local_steps ? 1 : 0);
  out.raw(start.data.view());
  out.u8(start.continues ? 1 : 0);
  if (!start.continues) return;
  out.raw(start.continues->stream.view());
  out.varint(start.continues->seq);
}

Result<TapeStart> read_start(ByteReader& in) {
  TapeStart start;
  if (in.u8() != version) return damaged("is of another version");
  const std::uint8_t arithmetic = in.u8();
  if (in.failed() || arithmetic > 1) return damaged("is of an unknown class");
  start.repeatable = arithmetic == 0;
  if (!start.repeatable) return start;
  const std::uint64_t shard = in.varint(), shards = in.varint();
  const std::uint8_t emit = in.u8(), scope = in.u8(), local_steps = in.u8();
  start.data = in.id<Hash256>();
  const std::uint8_t continues = in.u8();
  if (in.failed() || shards > UINT32_MAX || shard >= shards || emit > 1 || scope > 1 || local_steps > 1 ||
      continues > 1)
    return damaged("starts with values that no peer has");
  start.shard = static_cast<std::uint32_t>(shard);
  start.shards = static_cast<std::uint32_t>(shards);
  start.emit = static_cast<compress::Emit>(emit);
  start.scope = static_cast<compress::Scope>(scope);
  start.local_steps = local_steps == 1;
  if (continues == 1) {
    const auto stream = in.id<StreamId>();
    start.continues = UpdateKey{stream, in.varint()};
  }
  return start;
}

Result<std::vector<InFlightView::Waiting>> read_in_flight(bool with_weights, ByteReader& in) {
  const std::uint64_t count = in.varint();
  if (in.failed() || count > limits::in_flight_max) return damaged("has more updates in flight than a peer keeps");
  std::vector<InFlightView::Waiting> in_flight;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t period = in.varint(), peers = in.varint();
    const double weight = with_weights ? read_f64(in) : usual_weight;
    const bool ascends = in_flight.empty() || in_flight.back().period < period;
    if (in.failed() || !ascends || peers == 0 || peers > limits::members_max || !(weight >= 0 && weight <= 1))
      return damaged("has an update in flight that cannot be");
    in_flight.push_back({period, peers, weight});
  }
  return in_flight;
}

Bytes encode(const StepRecord& record, bool begins, const gossip::HaveSet& view, ViewTrail& trail) {
  ByteWriter out;
  const bool plain = !record.start || record.start->repeatable;
  if (record.segment) trail.restart();
  const bool whole = plain && trail.needs_whole(view);
  const bool with_weights = std::any_of(record.in_flight.begin(), record.in_flight.end(),
                                        [](const auto& own) { return own.weight != usual_weight; });
  out.u8(static_cast<std::uint8_t>((begins ? starts : 0) | (record.segment ? begins_segment : 0) |
                                   (whole ? whole_view : 0) | (record.brake != 1 ? brakes : 0) |
                                   (record.held ? held_back : 0) | (record.flush ? flushes : 0) |
                                   (record.drop_residual ? drops_residual : 0) |
                                   (with_weights ? other_weights : 0)));
  if (record.start) write_start(*record.start, out);
  if (!plain) return out.take();
  if (record.segment) {
    out.raw(record.segment->root.view());
    out.varint(record.segment->bytes);
    out.varint(record.segment->pieces);
  }
  trail.write(view, whole, out);
  out.varint(record.period);
  out.varint(record.peers);
  out.varint(record.batches);
  if (record.brake != 1) write_f64(record.brake, out);
  write_f64(record.density, out);
  out.varint(record.in_flight.size());
  for (const InFlightView::Waiting& own : record.in_flight) {
    out.varint(own.period);
    out.varint(own.peers);
    if (with_weights) write_f64(own.weight, out);
  }
  return out.take();
}

}  // namespace

void TapeWriter::add(const StepRecord& record, const gossip::HaveSet& view) {
  tape_.sized(encode(record, !std::exchange(begun_, true), view, trail_));
}

Result<std::vector<TapeReader::Read>> TapeReader::read(BytesView tape) {
  ByteReader in(tape);
  std::vector<Read> records;
  const bool segment = segment_ > 0 && (next_++ - 1) % segment_ == 0;
  while (!in.done()) {
    const BytesView one = in.sized(limits::record_bytes_max);
    if (in.failed()) return damaged("is cut off");
    ByteReader bytes(one);
    auto record = read_record(segment && records.empty(), bytes);
    if (!record) return record.error();
    if (!bytes.done()) return damaged("is of another length than it says");
    records.push_back({std::move(record).value(), trail_.view()});
  }
  return records;
}

Result<void> TapeReader::read_starts(std::uint8_t flags, StepRecord& record, ByteReader& in) {
  auto start = read_start(in);
  if (!start) return start.error();
  if (start_ && *start_ != *start) return damaged("of a segment starts with other values than its stream");
  record.start = start_ = std::move(start).value();
  if ((flags & begins_segment) == 0) return {};
  if ((flags & whole_view) == 0) return damaged("of a segment has no whole view");
  record.segment = SegmentStart{in.id<Hash256>(), in.varint(), in.varint()};
  trail_.restart();
  return {};
}

Result<StepRecord> TapeReader::read_record(bool segment, ByteReader& in) {
  const std::uint8_t flags = in.u8();
  if (in.failed()) return damaged("is empty");
  if (((flags & starts) == 0) != begun_) return damaged("starts in the middle, or does not start");
  begun_ = true;
  StepRecord record{.held = (flags & held_back) != 0,
                    .flush = (flags & flushes) != 0,
                    .drop_residual = (flags & drops_residual) != 0};
  if ((flags & (starts | begins_segment)) != 0)
    if (auto read = read_starts(flags, record, in); !read) return read.error();
  if (record.start && !record.start->repeatable) return record;
  if (segment != record.segment.has_value()) return damaged("begins a segment in the middle, or begins none");
  if (auto view = trail_.read((flags & whole_view) != 0, in); !view) return view.error();
  record.period = in.varint();
  record.peers = in.varint();
  record.batches = in.varint();
  if ((flags & brakes) != 0) record.brake = read_f64(in);
  record.density = read_f64(in);
  auto in_flight = read_in_flight((flags & other_weights) != 0, in);
  if (!in_flight) return in_flight.error();
  record.in_flight = std::move(in_flight).value();
  // Written so that no number passes that is none.
  const bool possible = record.brake > 0 && record.brake <= 1 && record.density > 0 && record.density <= 1;
  if (!possible || record.peers == 0 || record.peers > limits::members_max || record.batches == 0 ||
      record.batches > batches_max)
    return damaged("has a plan that no peer makes");
  return record;
}

}  // namespace rumor::audit
