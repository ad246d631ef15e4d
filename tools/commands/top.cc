// rumor top: running peers, again every second.
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
using Figure = std::optional<double>;

struct Look {
  std::string address;
  Result<PeerReport> report;
  Clock::time_point at;
};

// Bytes a second between two looks at one peer, which may have started anew in between.
Figure rate(const Look* before, const Look& now, std::optional<double> PeerReport::*bytes) {
  if (!before || !before->report || !now.report) return {};
  const Figure a = (*before->report).*bytes, b = (*now.report).*bytes;
  const double seconds = std::chrono::duration<double>(now.at - before->at).count();
  if (!a || !b || *b < *a || seconds <= 0) return {};
  return (*b - *a) / seconds;
}

std::string per_second(Figure bytes) {
  return bytes ? bytes_text(bytes) + "/s" : "-";
}

// 80 columns: one line a peer, and one for why where it does not answer.
std::string table(const std::vector<Look>& looks, const std::map<std::string, Look>& before) {
  std::string out = str(column("address", 21), column("phase", 10), column("done", 6, true), column("loss", 8, true),
                        column("acc", 7, true), column("peers", 6, true), column("out", 10, true), " limit\n");
  for (const Look& look : looks) {
    if (!look.report) {
      out += str(column(look.address, 20), " ", look.report.error().text.substr(0, 58), "\n");
      continue;
    }
    const PeerReport& r = *look.report;
    const auto last = before.find(look.address);
    const Figure sent = rate(last == before.end() ? nullptr : &last->second, look, &PeerReport::sent_bytes);
    out += str(column(look.address, 20), " ", column(r.phase, 10), column(percent_text(progress_of(r), 0), 6, true),
               column(r.loss ? fixed(*r.loss, 3) : "-", 8, true), column(percent_text(r.accuracy, 1), 7, true),
               column(count_text(r.live_peers), 6, true), column(per_second(sent), 10, true), " ",
               column(r.limit_kind, 11), "\n");
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
  const auto last = before.find(looks[0].address);
  const Look* old = last == before.end() ? nullptr : &last->second;
  return report_text(*looks[0].report, rate(old, looks[0], &PeerReport::sent_bytes),
                     rate(old, looks[0], &PeerReport::received_bytes));
}

// 1 when nobody answered: for scripts.
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
    screen.show(render(looks, before) + "\nq ends this");
    for (const Look& look : looks) before.insert_or_assign(look.address, look);
    if (screen.asked_to_end(command.every)) break;
  }
  return 0;
}

}  // namespace rumor::tools
