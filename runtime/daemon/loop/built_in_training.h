// Training of a built-in model: data, start weights and the trainer, on a processor or on a GPU.
//
// Thread: plain function.
#pragma once

#include "runtime/daemon/loop/event_loop.h"

namespace rumor::daemon {

// Errors: data or start weights that cannot be loaded, those of BuiltInModel::create(), and where `options` ask for a
// GPU Errc::usage with why there is none, or why it does not train this.
Result<Training> built_in_training(const PeerOptions& options, const NodeId& node);

// The description of the run's adapters, with the path of their base on this machine; empty: it has none.
std::string adapter_text(const RunConfig& config);

// The text of the run's tokenizer; empty if it has none. Errors: those of read_file().
Result<std::string> tokenizer_text(const RunConfig& config);

}  // namespace rumor::daemon
