// rumor follow: a peer that does not train, and exports the weights of its run.
#include "runtime/daemon/loop/event_loop.h"
#include "tools/words/command.h"

namespace rumor::tools {

int run_follow_command(const FollowCommand& command) {
  auto config = load_run(command.run);
  if (!config) return fail(config.error());
  if (config->has_own_models())
    return fail({Errc::usage, "peers of this run have models of their own (exchange.mode), so there is none to follow; "
                              "export that of one peer with `rumor export`"});
  daemon::PeerOptions options = daemon::following_options(std::move(config).value());
  if (!command.seeds.empty()) options.config.seeds = command.seeds;
  if (!command.allow.empty()) options.config.allow = command.allow;
  if (!command.token.empty()) options.config.token = command.token;
  if (!command.status.empty()) options.config.status = command.status;
  if (!command.status_token.empty()) options.config.status_token = command.status_token;
  if (!command.events.empty()) options.config.events = command.events;
  if (!command.folder.empty())
    options.following->exports = daemon::ExportPlan{.folder = command.folder,
                                                    .every = from_seconds(command.every),
                                                    .best = command.best,
                                                    .dtype = command.dtype};
  options.state = command.state;
  if (command.until_done) options.until_samples = options.config.samples;
  options.checkpoint_every = from_seconds(command.checkpoint_every);
  options.quiet = command.quiet;
  const auto ended = daemon::run_peer(options);
  if (!ended) return fail(ended.error());
  if (command.json)
    if (auto written = write_file(*command.json, ended->status_json); !written) return fail(written.error());
  return ended->exit_status;
}

}  // namespace rumor::tools
