// Training of a peer that serves one stage of a model that is cut (gossip/PIPELINE.md).
//
// Thread: plain functions.
#pragma once

#include "runtime/daemon/loop/event_loop.h"

namespace rumor::daemon {

// The options of a peer whose PeerOptions::stage is set, with the run of that stage in `config`, and the pipeline.
// Errors: those of StagePlace::create(); Errc::usage for a stage that is none, and for what a stage cannot have.
Result<PeerOptions> serve_stage(const PeerOptions& options);

// `options`: of serve_stage(). Only the first stage reads data. Errors: data that cannot be loaded, or are not as
// models::describe_data() says; those of StageTrainer::create().
Result<Training> stage_training(const PeerOptions& options, const NodeId& node);

}  // namespace rumor::daemon
