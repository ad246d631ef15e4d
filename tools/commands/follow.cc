// rumor follow: a peer that does not train, and exports the weights of its run.
#include <utility>

#include "tools/audit/audit_live.h"
#include "tools/commands/run_member.h"

namespace rumor::tools {

int run_follow_command(const FollowCommand& command) {
  auto config = load_run(command.run);
  if (!config) return fail(config.error());
  if (config->has_own_models())
    return fail({Errc::usage, "peers of this run have models of their own (exchange.mode), so there is none to follow; "
                              "export that of one peer with `rumor export`"});
  daemon::PeerOptions options;
  if (command.audit) {
    auto auditor = auditor_options(std::move(config).value());
    if (!auditor) return fail(auditor.error());
    options = std::move(auditor).value();
  } else {
    options = daemon::following_options(std::move(config).value());
  }
  if (!command.folder.empty())
    options.following->exports = daemon::ExportPlan{.folder = command.folder,
                                                    .every = from_seconds(command.every),
                                                    .best = command.best,
                                                    .dtype = command.dtype};
  return run_member(command, std::move(options));
}

}  // namespace rumor::tools
