// rumor top: the figures of running peers, refreshed every second.
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <map>

#include "runtime/base/text.h"
#include "tools/words/command.h"
#include "tools/words/full_screen.h"
#include "tools/words/peer_report.h"

namespace rumor::tools {
namespace {

using Clock = std::chrono::steady_clock;

struct Look {
  std::string address;
  Result<PeerReport> report;
  Clock::time_point at;
};

// The look at a peer before this one, where both found it.
const Look* earlier(const std::map<std::string, Look>& before, const Look& now) {
  const auto last = before.find(now.address);
  return last != before.end() && last->second.report && now.report ? &last->second : nullptr;
}

double seconds_since(const Look* before, const Look& now) {
  return before ? std::chrono::duration<double>(now.at - before->at).count() : 0;
}

// 80 columns: a line for each peer, or the reason why it does not answer.
std::string table(const std::vector<Look>& looks, const std::map<std::string, Look>& before) {
  const FigureSheet sheet = daemon::described_figures();
  std::string out = str(column("address", 20), top_headings(sheet), "\n");
  for (const Look& look : looks) {
    const Look* last = earlier(before, look);
    out += column(look.address, 20);
    out += look.report ? (*look.report).top_cells(sheet, last ? &*last->report : nullptr, seconds_since(last, look))
                       : " " + look.report.error().text.substr(0, 58);
    out += "\n";
  }
  return out;
}

std::vector<Look> look_at(const TopCommand& command, const std::string& token) {
  std::vector<Look> looks;
  for (const std::string& address : command.addresses) {
    auto report = ask_peer(address, token);
    looks.push_back({address, std::move(report), Clock::now()});
    if (interrupted()) break;
  }
  return looks;
}

std::string render(const std::vector<Look>& looks, const std::map<std::string, Look>& before) {
  if (looks.size() != 1 || !looks[0].report) return table(looks, before);
  const Look* last = earlier(before, looks[0]);
  return (*looks[0].report)
      .lines(daemon::described_figures(), last ? &*last->report : nullptr, seconds_since(last, looks[0]));
}

// Exit status 1, for scripts, when no peer answered.
int once(const std::vector<Look>& looks) {
  std::fputs(render(looks, {}).c_str(), stdout);
  for (const Look& look : looks)
    if (look.report) return 0;
  return looks.empty() ? 1 : fail(looks.front().report.error());
}

}  // namespace

int run_top_command(const TopCommand& command) {
  const auto token = load_status_token(command.token);
  if (!token) return fail(token.error());
  watch_for_signals();
  if (isatty(STDOUT_FILENO) == 0) return once(look_at(command, *token));
  FullScreen screen;
  std::map<std::string, Look> before;
  while (!interrupted()) {
    const std::vector<Look> looks = look_at(command, *token);
    screen.show(render(looks, before) + "\nq ends it");
    for (const Look& look : looks) before.insert_or_assign(look.address, look);
    if (screen.asked_to_end(command.every)) break;
  }
  return 0;
}

}  // namespace rumor::tools
