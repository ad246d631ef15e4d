// The texts and bytes of admission: what is accepted comes back from its own form; what is refused has a
// reason.
//
// First byte, modulo 4: an allowlist, a token, revocations, what a record shows of a token.
#include <cstdlib>

#include "runtime/base/limits.h"
#include "runtime/daemon/admission/admission_files.h"
#include "tests/fuzz/target.h"

using namespace rumor;

namespace {

void demand(bool holds) {
  if (!holds) std::abort();
}

void allow_list(const std::string& text) {
  const auto rule = gossip::parse_allow_list(text, "list");
  if (!rule) return demand(!rule.error().text.empty());
  demand(!rule->everyone);
  NodeId key;
  key.bytes.fill(0x42);
  for (const bool allowed : {true, false}) {
    const auto changed = gossip::parse_allow_list(daemon::with_key(text, key, allowed, "remark"), "list");
    demand(changed.ok());
    demand(changed->allowed.contains(key) == allowed && changed->refused.contains(key) == !allowed);
    demand(changed->allowed.size() + changed->refused.size() <=
           rule->allowed.size() + rule->refused.size() + 1);
  }
}

void token(const std::string& text) {
  const auto parsed = daemon::parse_token(text, "token");
  if (!parsed) return demand(!parsed.error().text.empty());
  const auto again = daemon::parse_token(daemon::token_text(*parsed), "token");
  demand(again.ok() && daemon::token_text(*again) == daemon::token_text(*parsed));
}

void revocations(const std::string& text) {
  const auto parsed = daemon::parse_revocations(text, "list");
  if (!parsed) return demand(!parsed.error().text.empty());
  std::string again;
  for (const auto& one : *parsed) again += daemon::revocation_text(one);
  demand(daemon::parse_revocations(again, "list").value() == *parsed);
}

void admit(BytesView bytes) {
  const auto decoded = gossip::Admit::decode(bytes);
  if (!decoded) return demand(!decoded.error().text.empty());
  const Bytes again = decoded->encode();
  demand(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()));
  demand(again.size() <= limits::admit_bytes_max);
}

}  // namespace

FUZZ_TARGET(admission) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      allow_list(text);
      break;
    case 1:
      token(text);
      break;
    case 2:
      revocations(text);
      break;
    default:
      admit({data + 1, size - 1});
  }
  return 0;
}
