// The cost of security for an update: hash, sign and verify, for payloads of several sizes. Also prints them as
// multiples of each other, since times depend on the machine.
#include <cstdio>
#include <memory>

#include "gossip/asio/identity.h"
#include "runtime/base/sha256.h"
#include "runtime/sim/world/tag_keys.h"
#include "tests/bench/measure.h"

namespace {

using namespace rumor;
using namespace rumor::gossip;

// The best of several runs of `work`, microseconds a call.
template <class Work>
double microseconds(int calls, Work work) {
  const double seconds = bench::best_of(7, [&] {
    for (int i = 0; i < calls; ++i) work();
  });
  return 1e6 * seconds / calls;
}

}  // namespace

int main() {
  const net::Identity identity = net::Identity::ephemeral();
  const net::IdentityKeys keys(identity);
  const sim::TagKeys tags(identity.id());
  const RunId run{};
  UpdateHeader header{{stream_of(identity.id(), 1), 7}, identity.id(), {}, 1, 2, 3};
  std::size_t kept = 0;
  const double message = microseconds(2000, [&] { kept += update_message(run, header).size(); });
  const double sign = microseconds(200, [&] { header.signature = keys.sign(update_message(run, header)); });
  const double verified = microseconds(200, [&] { kept += update_is_signed(keys, run, header) ? 1u : 0u; });
  UpdateHeader tagged = header;
  tagged.signature = tags.sign(update_message(run, tagged));
  const double tag = microseconds(2000, [&] { kept += update_is_signed(tags, run, tagged) ? 1u : 0u; });
  std::printf(
      "message %.2f us, sign %.1f us, verify %.1f us (%.0f a second), keyed tag of simulations %.2f us\n",
      message, sign, verified, 1e6 / verified, tag);
  for (const std::size_t bytes : {200u, 2'000u, 20'000u, 240'000u}) {
    const Bytes payload(bytes, 0x5a);
    const double hash = microseconds(bytes > 10'000 ? 20 : 1000, [&] { kept += sha256(payload).bytes[0]; });
    std::printf(
        "payload %6zu bytes: hash %7.2f us; origin (hash, sign) %7.1f us; receiver (hash, verify) %7.1f us = "
        "%.2f times the hash\n",
        bytes, hash, hash + sign, hash + verified, (hash + verified) / hash);
  }
  return kept == 0 ? 1 : 0;
}
