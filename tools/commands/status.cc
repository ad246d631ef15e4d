// rumor status: the figures of a running peer, once.
#include <cstdio>

#include "runtime/daemon/status/http_get.h"
#include "runtime/daemon/status/status_token.h"
#include "tools/words/command.h"
#include "tools/words/peer_report.h"

namespace rumor::tools {

Result<std::string> load_status_token(const std::string& path) {
  return path.empty() ? Result<std::string>(std::string()) : daemon::read_status_token(path);
}

int run_status_command(const StatusCommand& command) {
  const auto token = load_status_token(command.token);
  if (!token) return fail(token.error());
  const auto body = daemon::http_get(command.address, "/status", *token);
  if (!body) return fail(body.error());
  const auto report = PeerReport::parse(*body, command.address);
  if (!report) return fail(report.error());
  std::fputs((command.json ? *body : report->lines(daemon::described_figures())).c_str(), stdout);
  return 0;
}

}  // namespace rumor::tools
