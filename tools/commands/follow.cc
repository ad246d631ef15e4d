// rumor follow: a peer that does not train, and exports the weights of its run.
#include <utility>

#include "tools/commands/run_member.h"

namespace rumor::tools {

int run_follow_command(const FollowCommand& command) {
  auto config = load_run(command.run);
  if (!config) return fail(config.error());
  if (config->has_own_models())
    return fail({Errc::usage, "peers of this run have models of their own (exchange.mode), so there is none to follow; "
                              "export that of one peer with `rumor export`"});
  if (!command.folder.empty() && config->model.adapter.is_on())
    return fail({Errc::usage, "--export writes whole models, and peers of this run train adapters (model.adapter); "
                              "follow it with --state DIR, and `rumor export DIR`"});
  if (command.audit && (!config->records || config->segment == 0))
    return fail({Errc::usage, "--audit: the updates of this run have no records that could be audited; a run has them "
                              "with audit.record = true and segments (audit.segment), on all its peers and from its "
                              "start"});
  // It has time for more than a share. Any will do, since it has no steps that this would be the share of.
  if (command.audit && config->audit_share == 0) config->audit_share = 0.5;
  daemon::PeerOptions options = daemon::following_options(std::move(config).value());
  options.following->audits = command.audit;
  if (!command.folder.empty())
    options.following->exports = daemon::ExportPlan{.folder = command.folder,
                                                    .every = from_seconds(command.every),
                                                    .best = command.best,
                                                    .dtype = command.dtype};
  return run_member(command, std::move(options));
}

}  // namespace rumor::tools
