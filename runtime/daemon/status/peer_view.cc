#include "runtime/daemon/status/peer_view.h"

#include <chrono>
#include <utility>

#include "runtime/base/text.h"
#include "runtime/daemon/console/service_notify.h"
#include "runtime/daemon/status/figure_text.h"
#include "runtime/daemon/status/status_token.h"
#include "runtime/daemon/status/version.h"

namespace rumor::daemon {
namespace {

double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

EventLevel level_of(gossip::Note::Level level) {
  switch (level) {
    case gossip::Note::Level::warning: return EventLevel::warning;
    case gossip::Note::Level::error: return EventLevel::error;
    case gossip::Note::Level::debug:
    case gossip::Note::Level::info: return EventLevel::info;
  }
  return EventLevel::info;
}

}  // namespace

Result<void> PeerView::open(const RunConfig& config) {
  if (!config.events.empty())
    if (auto opened = journal_.open(config.events); !opened) return opened;
  if (!config.tensorboard.empty()) {
    auto log = TensorBoardLog::open(config.tensorboard, unix_seconds());
    if (!log) return log.error();
    tensorboard_.emplace(std::move(log).value());
  }
  if (config.status.empty()) return {};
  std::string token;
  if (!config.status_token.empty()) {
    auto read = read_status_token(config.status_token);
    if (!read) return read.error();
    token = std::move(read).value();
  }
  auto server = StatusServer::start(config.status, token);
  if (!server) return server.error();
  server_ = std::move(server).value();
  return {};
}

// Ready from the first report on: the peer listens by then, and has read its state.
void PeerView::tell_service(double seconds, const NodeStatus& s) {
  if (!own_process_ || seconds < tell_service_at_) return;
  const std::string ready = tell_service_at_ == 0 ? "READY=1\n" : "";
  tell_service_at_ = seconds + 5;
  notify_service(str(ready, "STATUS=", s.phase, ", ", s.samples, " of ", s.samples_planned, " samples, neighbours: ",
                     s.peers.size()));
}

void PeerView::close(bool process_ends) {
  if (own_process_ && process_ends) notify_service("STOPPING=1");
  server_.reset();
}

void PeerView::said(gossip::Note::Level level, const std::string& text) {
  journal_.add(unix_seconds(), "log", level_of(level), text);
}

void PeerView::progressed(const std::string& text) { journal_.pass(unix_seconds(), text); }

void PeerView::look(double seconds, NodeStatus& status, std::function<std::string()> updates) {
  status.uptime_seconds = seconds;
  status.unix_seconds = unix_seconds();
  status.version = version();
  bottleneck_.judge(seconds, status);
  journal_.observe(unix_seconds(), status);
  history_.observe(seconds, status);
  std::string trouble = journal_.trouble();
  if (tensorboard_)
    if (const auto written = tensorboard_->observe(unix_seconds(), status); !written) trouble = written.error().text;
  if (status.storage_trouble.empty()) status.storage_trouble = trouble;
  tell_service(seconds, status);
  if (!server_) return;
  const FigureSheet sheet = status_figures(status);
  server_->publish({figures_json(sheet), figures_metrics(sheet), std::move(updates), history_.json(), journal_.json(),
                    figures_description(sheet)});
}

}  // namespace rumor::daemon
