// Fuzzes what reads a socket first: the frame cutter, and the address parser. However a stream is cut into pieces, the
// same frames must come out.
#include <algorithm>
#include <string_view>
#include <vector>

#include "gossip/asio/address.h"
#include "gossip/asio/frames.h"
#include "runtime/base/check.h"
#include "tests/fuzz/target.h"

using namespace rumor;

namespace {

struct Cut {
  std::vector<Bytes> frames;
  std::string error;
};

// `piece` bytes at a time; 0 for all at once.
Cut cut(BytesView stream, std::size_t piece) {
  net::FrameReader reader;
  Cut result;
  while (!stream.empty() && result.error.empty()) {
    const std::size_t size = piece == 0 ? stream.size() : std::min(piece, stream.size());
    BytesView input = stream.first(size);
    stream = stream.subspan(size);
    while (auto frame = reader.next(input)) result.frames.emplace_back(frame->begin(), frame->end());
    result.error = reader.error();
  }
  return result;
}

}  // namespace

FUZZ_TARGET(frames) {
  const BytesView stream(data, size);
  const Cut whole = cut(stream, 0);
  for (const std::size_t piece : {std::size_t{1}, std::size_t{3}, std::size_t{64}}) {
    const Cut pieces = cut(stream, piece);
    RUMOR_CHECK(pieces.frames == whole.frames);
    RUMOR_CHECK(pieces.error == whole.error);
  }
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto address = net::parse_address(text)) {
    const auto again = net::parse_address(address->text());
    RUMOR_CHECK(again.ok() && again->host == address->host && again->port == address->port);
  }
  return 0;
}
