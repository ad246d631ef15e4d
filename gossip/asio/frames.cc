#include "gossip/asio/frames.h"

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/base/limits.h"
#include "runtime/base/text.h"

namespace rumor::net {
namespace {

constexpr std::size_t prefix_bytes = 4;
constexpr std::size_t kept_capacity_max = 512 << 10;  // a rare large frame does not hold its memory for ever
static_assert(kept_capacity_max >= limits::piece_bytes_max);
static_assert(limits::frame_bytes_max <= 0xffff'ffffu);

}  // namespace

bool FrameReader::take_length(BytesView& input) {
  while (length_size_ < prefix_bytes) {
    if (input.empty()) return false;
    length_[length_size_++] = input.front();
    input = input.subspan(1);
    if (length_size_ < prefix_bytes) continue;
    body_size_ = 0;
    for (std::size_t i = 0; i < prefix_bytes; ++i)
      body_size_ |= static_cast<std::size_t>(length_[i]) << (8 * i);
    if (body_size_ == 0) error_ = "a frame of no bytes arrived";
    if (body_size_ > bytes_max_)
      error_ = str("a frame of ", body_size_, " bytes was announced, beyond the limit of ", bytes_max_);
    bytes_max_ = limits::frame_bytes_max;
  }
  return error_.empty();
}

std::optional<BytesView> FrameReader::next(BytesView& input) {
  if (body_given_) {
    body_given_ = false;
    body_.clear();
    if (body_.capacity() > kept_capacity_max) Bytes().swap(body_);
  }
  if (!error_.empty() || !take_length(input)) return std::nullopt;

  const std::size_t take = std::min(body_size_ - body_.size(), input.size());
  const BytesView piece = input.first(take);
  input = input.subspan(take);
  if (body_.empty() && take == body_size_) {
    length_size_ = 0;
    return piece;
  }
  body_.insert(body_.end(), piece.begin(), piece.end());
  if (body_.size() < body_size_) return std::nullopt;
  length_size_ = 0;
  body_given_ = true;
  return BytesView(body_);
}

void FrameQueue::push(gossip::OutFrame frame, gossip::Lane lane) {
  RUMOR_CHECK(!frame.head.empty());
  RUMOR_CHECK(frame.size() <= limits::frame_bytes_max);
  bytes_ += prefix_bytes + frame.size();
  if (lane == gossip::Lane::bulk) bulk_bytes_ += prefix_bytes + frame.size();
  auto& queue = lane == gossip::Lane::control ? control_ : lane == gossip::Lane::live ? live_ : bulk_;
  queue.push_back(std::move(frame));
}

// Requires: !empty().
std::deque<gossip::OutFrame>& FrameQueue::next_lane() {
  if (!control_.empty()) return control_;
  if (bulk_.empty()) return live_;
  return live_.empty() || live_in_a_row_ >= bulk_share ? bulk_ : live_;
}

void FrameQueue::gather(Bytes& out, std::size_t bytes_wanted) {
  bool first = true;
  while (!empty()) {
    std::deque<gossip::OutFrame>& queue = next_lane();
    const gossip::OutFrame& frame = queue.front();
    const std::size_t size = prefix_bytes + frame.size();
    if (!first && out.size() + size > bytes_wanted) return;
    for (std::size_t i = 0; i < prefix_bytes; ++i)
      out.push_back(static_cast<std::uint8_t>(frame.size() >> (8 * i)));
    out.insert(out.end(), frame.head.begin(), frame.head.end());
    const BytesView tail = frame.tail();
    out.insert(out.end(), tail.begin(), tail.end());
    bytes_ -= size;
    if (&queue == &bulk_) bulk_bytes_ -= size;
    live_in_a_row_ = &queue == &bulk_ ? 0 : live_in_a_row_ + (&queue == &live_ ? 1 : 0);
    queue.pop_front();
    first = false;
  }
}

}  // namespace rumor::net
