// decode() on any bytes: it must refuse with a reason, or give a message that is valid and comes back from
// its own bytes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "gossip/wire/wire.h"
#include "tests/fuzz/target.h"

namespace {

using rumor::Bytes;
using rumor::gossip::Frame;

// Empty for a skipped frame.
Bytes encoded(const Frame& frame) {
  return std::visit(
      [](const auto& message) -> Bytes {
        if constexpr (std::is_same_v<std::decay_t<decltype(message)>, rumor::gossip::Skipped>) {
          return {};
        } else {
          if (message.invalid()) std::abort();
          return rumor::gossip::encode(message);
        }
      },
      frame);
}

}  // namespace

FUZZ_TARGET(wire) {
  const auto frame = rumor::gossip::decode({data, size});
  if (!frame) {
    if (frame.error().text.empty()) std::abort();
    return 0;
  }
  const Bytes once = encoded(*frame);
  if (once.empty()) return 0;
  const auto again = rumor::gossip::decode(once);
  if (!again || encoded(*again) != once) std::abort();
  return 0;
}
