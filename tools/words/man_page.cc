// Man pages in the macros of man(7).
#include "runtime/base/text.h"
#include "runtime/daemon/status/version.h"
#include "runtime/run/run_config.h"
#include "tools/words/reference.h"

namespace rumor::tools {
namespace {

// Escapes the characters that troff interprets: a backslash, a dash, a dot or quote at the start of a line.
std::string escaped(const std::string& text) {
  std::string out;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out.push_back(c);
    line_begins = c == '\n';
  }
  return out;
}

std::string options_of(const std::vector<OptionDoc>& options) {
  std::string out;
  for (const OptionDoc& option : options) {
    out += str(".TP\n\\fB", escaped(option.name), "\\fR");
    if (!option.argument.empty()) out += str(" \\fI", escaped(option.argument), "\\fR");
    out += str("\n", escaped(option.help), "\n");
  }
  return out;
}

std::string body_of(const CommandDoc& command, const std::string& parent) {
  std::string out = str(".SH SYNOPSIS\n.B ", escaped(synopsis(command, parent)), "\n");
  if (!command.positionals.empty()) out += ".SH ARGUMENTS\n" + options_of(command.positionals);
  if (!command.options.empty()) out += ".SH OPTIONS\n" + options_of(command.options);
  for (const CommandDoc& sub : command.commands) {
    out += str(".SH COMMAND ", escaped(sub.name), "\n", escaped(sub.summary), ".\n.PP\n.B ",
               escaped(synopsis(sub, parent + " " + command.name)), "\n");
    out += options_of(sub.positionals) + options_of(sub.options);
  }
  if (!command.footer.empty()) out += str(".SH NOTES\n.nf\n", escaped(command.footer), "\n.fi\n");
  return out;
}

std::string keys_section() {
  std::string out =
      ".SH RUN FILE KEYS\nWritten \"key = value\" below [section], or given as \\-\\-set section.key=value. Shared: "
      "equal on all peers of a run.\n";
  for (const RunKey& key : run_keys())
    out += str(".TP\n\\fB", escaped(key.name), "\\fR \\fI", escaped(key.wants), "\\fR\n",
               escaped(std::string(run_key_help(key.name))), key.shared ? " (shared)" : "",
               key.by_default.empty() ? "" : str("; default: ", escaped(key.by_default)), "\n");
  return out;
}

std::string program_body(const CommandDoc& program) {
  std::string out = str(".SH SYNOPSIS\n.B rumor\n[\\fIOPTIONS\\fR] \\fICOMMAND\\fR\n.SH DESCRIPTION\n",
                        escaped(program.summary), "\n.SH COMMANDS\n");
  for (const CommandDoc& command : program.commands)
    out += str(".TP\n.BR rumor\\-", command.name, " (1)\n", escaped(command.summary), ".\n");
  return out + str(".SH OPTIONS\n", options_of(program.options), keys_section(), ".SH EXIT STATUS\n.nf\n",
                   escaped(program.footer), "\n.fi\n");
}

}  // namespace

Result<std::string> man_page(const CommandDoc& program, const std::string& name) {
  const auto page = [&](const std::string& title, const std::string& summary, const std::string& body) {
    return str(".TH ", title, " 1 \"\" \"rumor ", daemon::version(), "\" \"User Commands\"\n.SH NAME\n", title,
               " \\- ", escaped(summary), "\n", body);
  };
  if (name.empty() || name == program.name)
    return page(program.name, "train one model on machines of different people", program_body(program));
  for (const CommandDoc& command : program.commands)
    if (command.name == name)
      return page(str(program.name, "-", name), command.summary,
                  body_of(command, program.name) + ".SH SEE ALSO\n.BR rumor (1)\n");
  return Error{Errc::usage, str("there is no command ", name, "; `rumor --help` names them")};
}

}  // namespace rumor::tools
