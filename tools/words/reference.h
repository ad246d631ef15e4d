// The program's documentation as text: the reference, man pages, shell completions. It is generated from the command
// line's description, the keys of the run file and a peer's metrics, so it cannot drift from the program.
//
// Thread: plain functions.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace rumor::tools {

struct OptionDoc {
  std::string name;      // "--listen", or "RUN" for a positional argument
  std::string argument;  // type of its argument: "TEXT", "INT in [1 - 64]"; empty: none
  std::string help;
  bool required = false;
  std::vector<std::string> choices;  // where it takes one of these
};

struct CommandDoc {
  std::string name, summary, footer;
  std::vector<OptionDoc> positionals, options;
  std::vector<CommandDoc> commands;
};

// "rumor [OPTIONS] COMMAND", "rumor peer [OPTIONS] RUN". `parent`: names before, "rumor" or "rumor key".
std::string synopsis(const CommandDoc& command, const std::string& parent);

// Every command, option, run file key, metric and exit status, as Markdown.
std::string reference_markdown(const CommandDoc& program);

// A page for man(7) macros: of the program, with all run file keys, or of one of its commands ("rumor-peer.1").
// Errors: Errc::usage (no such command).
Result<std::string> man_page(const CommandDoc& program, const std::string& command);

// For bash, zsh or fish. Errors: Errc::usage (another shell).
Result<std::string> completion(const CommandDoc& program, const std::string& shell);

}  // namespace rumor::tools
