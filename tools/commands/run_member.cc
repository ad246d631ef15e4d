#include "tools/commands/run_member.h"

namespace rumor::tools {

int run_member(const MemberWords& words, daemon::PeerOptions options) {
  RunConfig& config = options.config;
  if (!words.seeds.empty()) config.seeds = words.seeds;
  if (!words.status.empty()) config.status = words.status;
  if (!words.status_token.empty()) config.status_token = words.status_token;
  if (!words.events.empty()) config.events = words.events;
  if (!words.allow.empty()) config.allow = words.allow;
  if (!words.token.empty()) config.token = words.token;
  if (words.quiet) config.data.progress = {};
  if (words.until_done && !options.until_samples) options.until_samples = config.samples;
  options.state = words.state;
  options.checkpoint_every = from_seconds(words.checkpoint_every);
  options.quiet = words.quiet;
  const auto ended = daemon::run_peer(options);
  if (!ended) return fail(ended.error());
  if (words.json)
    if (auto written = write_file(*words.json, ended->status_json); !written) return fail(written.error());
  return ended->exit_status;
}

}  // namespace rumor::tools
