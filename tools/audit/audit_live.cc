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
  for (const auto& row : rows) {
    const auto count = [&](const char* name) { return row.at(name).get<std::uint64_t>(); };
    if (count("segments_audited") == 0) continue;
    table.rows.push_back({row.at("node_id").get<std::string>().substr(0, 8), str(count("updates")),
                          str(count("segments_audited")), str(count("segments_agreed")), str(count("segments_differ")),
                          str(count("segments_untold")), str(count("segments_withheld"))});
    differ += count("segments_differ");
  }
  if (table.rows.empty())
    std::fputs("no segment was made again: the run ended, or was left, before one was drawn\n", to);
  else
    std::fputs(sim::text_table(table).c_str(), to);
  return differ;
}

}  // namespace

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
  if (!command.steps.empty())
    return fail({Errc::usage, str("--steps is for a state directory: of the swarm at ", command.target, " segments are "
                                  "drawn as they are published")});
  auto config = load_run(command.run);
  if (!config) return fail(config.error());
  config->seeds = {command.target};
  if (!command.token.empty()) config->token = command.token;
  auto options = auditor_options(std::move(config).value());
  if (!options) return fail(options.error());
  options->following->audited = command.peer;
  options->until_samples = options->config.samples;
  const auto ended = daemon::run_peer(*options);
  if (!ended) return fail(ended.error());
  if (command.json)
    if (auto written = write_file(*command.json, ended->status_json); !written) return fail(written.error());
  const std::uint64_t differ = tell_findings(ended->status_json, command.json == "-" ? stderr : stdout);
  return differ > 0 ? 1 : ended->exit_status;
}

}  // namespace rumor::tools
