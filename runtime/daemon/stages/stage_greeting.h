// ask_for_members(): the members of a pipeline, as its peers tell them to a peer that has no stage yet
// (gossip/PIPELINE.md 11).
//
// Thread: the caller's, which waits. Memory: the table.
#pragma once

#include <string>
#include <vector>

#include "gossip/asio/identity.h"
#include "gossip/links/figures.h"
#include "gossip/wire/wire.h"

namespace rumor::daemon {

struct StageGreeting {
  net::Identity identity;
  gossip::PipelineId pipeline;
  Bytes admit;                         // the token to show; empty: none
  std::vector<std::string> addresses;  // of seeds, and of members met earlier
};

// Those that greeted us are `linked`. Without a peer that answers within 3 s: none. This peer is left out.
std::vector<gossip::StageMember> ask_for_members(const StageGreeting& greeting);

}  // namespace rumor::daemon
