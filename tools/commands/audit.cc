// rumor audit: makes the updates in a state directory's log again, or segments of a running swarm as they are
// published, and says which are not what their records say.
#include <cstdio>
#include <filesystem>

#include "runtime/base/text.h"
#include "tools/audit/audited_state.h"
#include "tools/audit/audit_live.h"

namespace rumor::tools {

namespace {

// Nothing: all peers.
Result<std::optional<NodeId>> peer_named(const std::string& digits, const audit::RunAudit& all) {
  if (digits.empty()) return std::optional<NodeId>();
  std::set<NodeId> peers;
  for (const auto& [stream, origin] : all.streams()) peers.insert(origin);
  const auto found = one_named(peers, digits, "--peer " + digits);
  if (!found) return found.error();
  return std::optional<NodeId>(*found);
}

void tell_what_follows(const std::vector<audit::StreamFindings>& findings, const AuditedState& state) {
  if (state.before_log() > 0)
    std::fprintf(stderr, "%llu earlier updates are no longer in this log; they cannot be made again from here\n",
                 static_cast<unsigned long long>(state.before_log()));
  for (const audit::StreamFindings& one : findings)
    if (one.differ > 0)
      std::fprintf(stderr,
                   "peer %s did not compute what the run asks for, or its memory erred; the run's owner can take its "
                   "updates back from all replicas: rumor key revoke --help\n",
                   one.origin.hex().c_str());
}

}  // namespace

int run_audit_command(const AuditCommand& command) {
  if (command.target.find(':') != std::string::npos && !std::filesystem::exists(command.target))
    return audit_live(command);
  const auto part = audited_part(command);
  if (!part) return fail(part.error());
  const auto state = AuditedState::open(command.run, command.target);
  if (!state) return fail(state.error());
  audit::RunAudit all((*state)->run());
  const auto peer = peer_named(part->peer, all);
  if (!peer) return fail(peer.error());
  AuditProgress progress(all.updates());
  const audit::RunAudit::Wanted wanted{.origin = *peer, .first = part->first, .last = part->last};
  const auto findings = all.audit(wanted, [&](const auto&, const auto&) { return progress(); });
  if (command.json)
    if (auto written = write_file(*command.json, to_json(findings, **state, progress.interrupted())); !written)
      return fail(written.error());
  std::fputs(to_table(findings).c_str(), command.json == "-" ? stderr : stdout);
  tell_what_follows(findings, **state);
  if (progress.interrupted()) return fail({Errc::io, "interrupted: the table has what was made again until then"});
  return std::any_of(findings.begin(), findings.end(), [](const auto& one) { return one.differ > 0; }) ? 1 : 0;
}

}  // namespace rumor::tools
