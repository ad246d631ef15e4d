#include "runtime/audit/view_trail.h"

#include "runtime/base/check.h"

namespace rumor::audit {

namespace {

std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}

std::int64_t from_zigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

Error not_a_view(const char* why) { return {Errc::corrupt, std::string("the view of a step record ") + why}; }

}  // namespace

bool ViewTrail::needs_whole(const gossip::HaveSet& view) const { return !begun_ || !view.includes(view_); }

void ViewTrail::name(const StreamId& stream) {
  if (number_.try_emplace(stream, streams_.size()).second) streams_.push_back(stream);
}

void ViewTrail::write(const gossip::HaveSet& view, bool whole, ByteWriter& out) {
  RUMOR_CHECK(whole || !needs_whole(view));
  if (whole) {
    view.encode(out);
    for (const auto& [stream, ranges] : view.streams()) name(stream);
  } else {
    write_news(view_.missing_from(view), out);
  }
  begun_ = true;
  view_ = view;
}

void ViewTrail::write_news(const gossip::HaveSet& news, ByteWriter& out) {
  out.varint(news.streams().size());
  for (const auto& [stream, ranges] : news.streams()) {
    const std::size_t known = streams_.size();
    name(stream);
    out.varint(number_.at(stream));
    if (number_.at(stream) == known) out.raw(stream.view());
    out.varint(ranges.size());
    std::uint64_t expected = view_.head(stream) + 1;
    for (const gossip::SeqRange& range : ranges) {
      out.varint(zigzag(static_cast<std::int64_t>(range.first) - static_cast<std::int64_t>(expected)));
      out.varint(range.last - range.first);
      expected = range.last + 1;
    }
  }
}

Result<void> ViewTrail::read(bool whole, ByteReader& in) {
  if (!whole && !begun_) return not_a_view("is not whole, and it is the first");
  begun_ = true;
  if (!whole) return read_news(in);
  auto view = gossip::HaveSet::decode(in);
  if (!view) return view.error();
  view_ = std::move(view).value();
  for (const auto& [stream, ranges] : view_.streams()) name(stream);
  return {};
}

Result<void> ViewTrail::read_news(ByteReader& in) {
  const std::uint64_t count = in.varint();
  if (count > in.remaining()) return not_a_view("names more streams than it has bytes");
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t number = in.varint();
    if (in.failed() || number > streams_.size()) return not_a_view("has a stream without an id");
    if (number == streams_.size()) {
      name(in.id<StreamId>());
      if (in.failed() || number == streams_.size()) return not_a_view("names a stream twice");
    }
    if (auto read = read_ranges(streams_[number], in); !read) return read;
  }
  return {};
}

Result<void> ViewTrail::read_ranges(const StreamId& stream, ByteReader& in) {
  const std::uint64_t count = in.varint();
  if (in.failed() || count == 0 || count > in.remaining()) return not_a_view("has a stream without updates");
  std::uint64_t expected = view_.head(stream) + 1;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::int64_t apart = from_zigzag(in.varint());
    const std::uint64_t more = in.varint();
    const std::uint64_t first = expected + static_cast<std::uint64_t>(apart);
    if (in.failed() || more >= gossip::seq_max || first > gossip::seq_max) return not_a_view("ends inside a range");
    const gossip::SeqRange range{first, first + more};
    if (!range.valid()) return not_a_view("has a range that no stream has");
    const std::uint64_t before = view_.count();
    view_.insert(stream, range);
    if (view_.count() != before + range.count()) return not_a_view("names an update twice");
    expected = range.last + 1;
  }
  return {};
}

}  // namespace rumor::audit
