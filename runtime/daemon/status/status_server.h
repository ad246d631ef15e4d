// StatusServer: serves the figures of a peer to people and programs, over HTTP.
//
//   GET /         a page for people (status_page.h) that follows the other paths
//   GET /status   the status as JSON
//   GET /metrics  the same figures for Prometheus
//   GET /figures  labels and forms of these figures, as JSON (figure_text.h)
//   GET /history  the curves since the start, as JSON (run_history.h)
//   GET /events   the newest events, as JSON (event_journal.h)
//   GET /updates  the newest own updates as a capture (runtime/replica/capture.h), for `rumor stats HOST:PORT`
//   GET /healthz  200 "ok" once something was published, 503 before
//
// The node publishes immutable snapshots, each of which replaces the one before; the server only reads them. No client
// can change anything, but any client can read. So without a token the server listens on loopback addresses only, and
// answers only requests that name this machine: a web page whose own name is made to point here gets 403. With a token
// it listens anywhere and answers requests that carry it, as `Authorization: Bearer TOKEN` or `?token=TOKEN`. Others
// get 401, except for / and /healthz, which hold nothing of the run.
//
// Threads: serves on threads of its own; publish() may be called from any. Cost of publish(): a pointer swap.
// Limits: 4 requests at a time, 4 KiB of request body, 1 s for a request to arrive, one request a connection.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/base/result.h"

namespace rumor::daemon {

// One moment of the peer, served until the next snapshot.
struct StatusSnapshot {
  std::string status_json;
  std::string metrics_text;
  std::function<std::string()> updates;  // never null; called for each request, on a thread of the server
  std::string history_json, events_json, figures_json;
};

class StatusServer {
 public:
  // Serves at "host:port", port 0 for any free one. Errors: Errc::usage (malformed, or not loopback without a token),
  // Errc::io ("cannot serve status on 127.0.0.1:8001: address already in use; choose another with --status").
  static Result<std::unique_ptr<StatusServer>> start(const std::string& host_port, const std::string& token = "");

  // Stops serving: at once as a rule, within about a second when a client has connected and dawdles.
  ~StatusServer();
  StatusServer(const StatusServer&) = delete;
  StatusServer& operator=(const StatusServer&) = delete;

  // With the real port.
  const std::string& address() const;

  // Replaces the snapshot. A request under way is answered from the one that it began with.
  void publish(StatusSnapshot snapshot);

 private:
  struct Impl;
  explicit StatusServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rumor::daemon
