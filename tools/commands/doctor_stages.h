// Checks of `rumor doctor` for a model that is cut into stages: the bytes of a run's borders, and whether the links of
// a running peer are short enough for its speed.
//
// Thread: plain functions.
#pragma once

#include "models/data/dataset.h"
#include "runtime/run/run_config.h"
#include "tools/words/findings.h"
#include "tools/words/peer_report.h"

namespace rumor::tools {

// A line for each border: bytes of a micro-batch, and how long the link takes for them at network.up_mbit, else at
// 100 Mbit/s. Nothing for a model that is not cut.
void check_borders(Findings& out, const RunConfig& config, const models::DataSet& data);

// The micro-batches in flight that the links of this peer to the stage above want. Nothing for another peer.
void check_stage(Findings& out, const PeerReport& peer);

}  // namespace rumor::tools
