// Proofs that an update is false, as runtime/audit finds them and gossip carries them (gossip/PROTOCOL.md 6.16).
//
// Thread: pure functions.
#pragma once

#include <optional>

#include "gossip/contract/have_set.h"
#include "gossip/contract/revocation.h"

namespace rumor::audit {

// Takes back the false update and all of its node that its view does not hold. view: of its last step, as its own tape
// says; empty where that cannot be read. Nothing: more streams would have to stay than a proof names.
std::optional<gossip::Revocation> proof_of(const NodeId& node, const UpdateKey& false_update,
                                           const gossip::HaveSet& view);

}  // namespace rumor::audit
