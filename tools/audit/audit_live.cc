#include "tools/audit/audit_live.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/base/text.h"
#include "runtime/report/table.h"

namespace rumor::tools {

namespace {

// The peers' rows of a status, without those of which no segment was made again. Returns the segments that differ.
std::uint64_t tell_findings(const std::string& status, std::FILE* to) {
  const auto rows = nlohmann::json::parse(status).at("contributions");
  sim::Table table{.head = {"peer", "updates", "segments", "agree", "differ", "cannot tell", "withheld"},
                   .rows = {},
                   .words = 1};
  std::uint64_t differ = 0;
  std::string reasons;
  for (const auto& row : rows) {
    const auto count = [&](const char* name) { return row.at(name).get<std::uint64_t>(); };
    if (count("segments_audited") == 0) continue;
    table.rows.push_back({row.at("node_id").get<std::string>().substr(0, 8), str(count("updates")),
                          str(count("segments_audited")), str(count("segments_agreed")), str(count("segments_differ")),
                          str(count("segments_untold")), str(count("segments_withheld"))});
    differ += count("segments_differ");
    if (count("segments_untold") > 0)
      reasons += str("peer ", table.rows.back().front(), " cannot be told, the last time since ",
                     row.at("segments_untold_why").get<std::string>(), "\n");
  }
  if (table.rows.empty())
    std::fputs("no segment was made again: the run ended, or was left, before one was drawn\n", to);
  else
    std::fputs((sim::text_table(table) + reasons).c_str(), to);
  return differ;
}

}  // namespace

// "A..B", from 1; an end may be left out.
Result<audit::AuditedPart> audited_part(const AuditCommand& command) {
  audit::AuditedPart part{.peer = command.peer};
  const std::string& text = command.steps;
  if (text.empty()) return part;
  const auto dots = text.find("..");
  const Error wrong{Errc::usage, str("--steps ", text, " wants A..B, numbers of updates such as 1..100")};
  if (dots == std::string::npos) return wrong;
  const std::string first = text.substr(0, dots), last = text.substr(dots + 2);
  for (const std::string& number : {first, last})
    if (number.size() > 12 || number.find_first_not_of("0123456789") != std::string::npos) return wrong;
  if (!first.empty()) part.first = std::stoull(first);
  if (!last.empty()) part.last = std::stoull(last);
  if (part.first > part.last) return wrong;
  return part;
}

Result<daemon::PeerOptions> auditor_options(RunConfig config) {
  if (!config.records || config.segment == 0)
    return Error{Errc::usage, "the updates of this run have no records that could be audited; a run has them with "
                              "audit.record = true and segments (audit.segment), on all its peers and from its start"};
  // It has time for more than a share. Any will do, since it has no steps that this would be the share of.
  if (config.audit_share == 0) config.audit_share = 0.5;
  daemon::PeerOptions options = daemon::following_options(std::move(config));
  options.following->audits = true;
  return options;
}

int audit_live(const AuditCommand& command) {
  auto part = audited_part(command);
  if (!part) return fail(part.error());
  auto config = load_run(command.run);
  if (!config) return fail(config.error());
  config->seeds = {command.target};
  if (!command.token.empty()) config->token = command.token;
  auto options = auditor_options(std::move(config).value());
  if (!options) return fail(options.error());
  options->following->audited = std::move(part).value();
  options->until_samples = options->config.samples;
  const auto ended = daemon::run_peer(*options);
  if (!ended) return fail(ended.error());
  if (command.json)
    if (auto written = write_file(*command.json, ended->status_json); !written) return fail(written.error());
  const std::uint64_t differ = tell_findings(ended->status_json, command.json == "-" ? stderr : stdout);
  return differ > 0 ? 1 : ended->exit_status;
}

}  // namespace rumor::tools
