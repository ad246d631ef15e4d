// Completions for three shells. Each offers the commands, their options, the choices of an option, and file names
// elsewhere.
#include "runtime/base/text.h"
#include "tools/words/reference.h"

namespace rumor::tools {
namespace {

std::string names_of(const std::vector<CommandDoc>& commands) {
  std::string out;
  for (const CommandDoc& command : commands) out += (out.empty() ? "" : " ") + command.name;
  return out;
}

std::string names_of(const std::vector<OptionDoc>& options) {
  std::string out;
  for (const OptionDoc& option : options) out += (out.empty() ? "" : " ") + option.name;
  return out;
}

std::string words(const std::vector<std::string>& choices) {
  std::string out;
  for (const std::string& choice : choices) out += (out.empty() ? "" : " ") + choice;
  return out;
}

// In single quotes of a shell; only the first line, which is enough beside a name.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text.substr(0, text.find('\n'))) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

// For the parts of zsh's _arguments specification: brackets and colons end them.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text.substr(0, text.find('\n'))) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

// The options of a command and of its subcommands. They are few, and one too many does no harm.
std::vector<OptionDoc> all_options(const CommandDoc& command) {
  std::vector<OptionDoc> all = command.options;
  for (const CommandDoc& sub : command.commands) all.insert(all.end(), sub.options.begin(), sub.options.end());
  return all;
}

std::string bash(const CommandDoc& program) {
  std::string out =
      str("# bash completion of rumor, made by `rumor help --completion bash`\n_rumor() {\n",
          "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}\n",
          "  local offers=\n  if [[ $COMP_CWORD -eq 1 ]]; then\n    offers='", names_of(program.commands), " ",
          names_of(program.options), "'\n  else\n    case \"$command $before\" in\n");
  for (const CommandDoc& command : program.commands) {
    for (const OptionDoc& option : all_options(command))
      if (!option.choices.empty())
        out += str("      '", command.name, " ", option.name, "') offers='", words(option.choices), "' ;;\n");
    if (!command.commands.empty())
      out += str("      '", command.name, " ", command.name, "') offers='", names_of(command.commands), "' ;;\n");
  }
  out += "    esac\n    if [[ -z $offers && $word == -* ]]; then\n      case $command in\n";
  for (const CommandDoc& command : program.commands)
    out += str("        ", command.name, ") offers='", names_of(all_options(command)), "' ;;\n");
  return out +
         "      esac\n    fi\n  fi\n  COMPREPLY=($(compgen -W \"$offers\" -- \"$word\"))\n"
         "  [[ ${#COMPREPLY[@]} -gt 0 ]] || COMPREPLY=($(compgen -f -- \"$word\"))\n}\n"
         "complete -o filenames -F _rumor rumor\n";
}

std::string zsh(const CommandDoc& program) {
  std::string out =
      "#compdef rumor\n# zsh completion of rumor, made by `rumor help --completion zsh`\n_rumor() {\n"
      "  local -a commands\n  commands=(\n";
  for (const CommandDoc& command : program.commands)
    out += str("    ", quoted(str(command.name, ":", zsh_text(command.summary))), "\n");
  out +=
      "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n  shift words\n"
      "  (( CURRENT-- ))\n  case $words[1] in\n";
  for (const CommandDoc& command : program.commands) {
    out += str("    ", command.name, ")\n      _arguments");
    for (const OptionDoc& option : all_options(command)) {
      std::string spec = str(option.name, "[", zsh_text(option.help), "]");
      if (!option.choices.empty())
        spec += str(":value:(", words(option.choices), ")");
      else if (!option.argument.empty())
        spec += ":value:_files";
      out += str(" \\\n        ", quoted(spec));
    }
    if (!command.commands.empty()) out += str(" \\\n        '1:command:(", names_of(command.commands), ")'");
    out += " \\\n        '*:file:_files' ;;\n";
  }
  return out + "  esac\n}\n_rumor \"$@\"\n";
}

std::string fish(const CommandDoc& program) {
  std::string out = "# fish completion of rumor, made by `rumor help --completion fish`\n";
  for (const CommandDoc& command : program.commands) {
    out +=
        str("complete -c rumor -n __fish_use_subcommand -f -a ", command.name, " -d ", quoted(command.summary), "\n");
    const std::string here = str("complete -c rumor -n '__fish_seen_subcommand_from ", command.name, "'");
    if (!command.commands.empty()) out += str(here, " -f -a '", names_of(command.commands), "'\n");
    for (const OptionDoc& option : all_options(command)) {
      out += str(here, " -l ", option.name.substr(2), option.argument.empty() ? "" : " -r");
      if (!option.choices.empty()) out += str(" -f -a '", words(option.choices), "'");
      out += str(" -d ", quoted(option.help), "\n");
    }
  }
  return out;
}

}  // namespace

Result<std::string> completion(const CommandDoc& program, const std::string& shell) {
  if (shell == "bash") return bash(program);
  if (shell == "zsh") return zsh(program);
  if (shell == "fish") return fish(program);
  return Error{Errc::usage, str("no completion for ", shell, "; there are bash, zsh and fish")};
}

}  // namespace rumor::tools
