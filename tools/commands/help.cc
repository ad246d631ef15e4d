// rumor help: help, man pages, shell completion and the reference.
#include <cstdio>

#include "tools/words/command.h"
#include "tools/words/reference.h"

namespace rumor::tools {

int run_help_command(const HelpCommand& command, const CommandDoc& program) {
  Result<std::string> text = reference_markdown(program);
  if (command.man) text = man_page(program, command.command);
  if (!command.completion.empty()) text = completion(program, command.completion);
  if (!text) return fail(text.error());
  std::fputs(text->c_str(), stdout);
  return 0;
}

}  // namespace rumor::tools
