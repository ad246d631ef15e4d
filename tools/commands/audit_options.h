// Options of the command line that several commands have, and those of `rumor audit`, `replay` and `serve`.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/words/command.h"

namespace rumor::tools {

inline constexpr const char* run_help =
    "a run file (.toml) or a preset: fashion-mlp, fashion-cnn, synthetic, text-gpt, text-lstm, llama-tiny";
inline constexpr const char* set_help = "override a run file key, such as compress.density=0.003; may be repeated";

// --weights, which sets the run file's model.weights.
void add_weights(CLI::App& app, RunSource& run);

void add_audit(CLI::App& app, AuditCommand& command);
void add_replay(CLI::App& app, ReplayCommand& command);
// serve_options.cc
void add_serve(CLI::App& app, ServeCommand& command);

}  // namespace rumor::tools
