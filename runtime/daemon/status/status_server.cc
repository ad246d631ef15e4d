#include "runtime/daemon/status/status_server.h"

#include <mutex>
#include <utility>

#include "gossip/asio/address.h"
#include "runtime/base/text.h"
#include "runtime/daemon/status/http_listener.h"
#include "runtime/daemon/status/status_page.h"
#include "runtime/daemon/status/status_token.h"

namespace rumor::daemon {
namespace {

constexpr std::size_t threads = 4;
constexpr std::size_t request_body_bytes_max = 4 << 10;

// The host of a Host header, whose port may be missing.
bool names_this_machine(const std::string& header) {
  if (header.empty()) return true;  // HTTP/1.0, which no browser speaks
  const auto with_port = net::parse_address(header);
  if (with_port) return net::is_loopback(with_port->host);
  const auto without_port = net::parse_address(header + ":80");
  return without_port.ok() && net::is_loopback(without_port->host);
}

// As a header or in the address, which a link to the page can carry.
std::string shown_token(const httplib::Request& request) {
  constexpr std::string_view scheme = "Bearer ";
  const std::string header = request.get_header_value("Authorization");
  return header.starts_with(scheme) ? header.substr(scheme.size()) : request.get_param_value("token");
}

void refuse(httplib::Response& response, int status, const char* why) {
  response.status = status;
  response.set_content(why, "text/plain");
}

}  // namespace

struct StatusServer::Impl {
  std::shared_ptr<const StatusSnapshot> current() {
    const std::lock_guard<std::mutex> hold(mutex);
    return snapshot;
  }
  void serve_snapshot(const char* path, std::function<std::string(const StatusSnapshot&)> text, const char* type);
  void set_up(bool loopback, const std::string& token);
  void guard(bool loopback, const std::string& token);

  std::mutex mutex;
  std::shared_ptr<const StatusSnapshot> snapshot;  // guarded by mutex; null before the first publish()
  HttpListener listener{"status ", "--status", threads, request_body_bytes_max};  // ends first
  httplib::Server& server = listener.server;
};

void StatusServer::Impl::serve_snapshot(const char* path, std::function<std::string(const StatusSnapshot&)> text,
                                        const char* type) {
  server.Get(path, [this, text = std::move(text), type](const httplib::Request&, httplib::Response& response) {
    const auto shown = current();
    if (!shown) response.status = 503;
    response.set_header("Cache-Control", "no-store");
    response.set_content(shown ? text(*shown) : "starting\n", shown ? type : "text/plain");
  });
}

// Lets through requests that may be answered, and refuses the others.
void StatusServer::Impl::guard(bool loopback, const std::string& token) {
  using Answer = httplib::Server::HandlerResponse;
  server.set_pre_routing_handler([=](const httplib::Request& request, httplib::Response& response) {
    if (token.empty() && loopback && !names_this_machine(request.get_header_value("Host"))) {
      refuse(response, 403, "this address serves its own machine only\n");
      return Answer::Handled;
    }
    const bool open = token.empty() || request.path == "/" || request.path == "/healthz";
    if (open || same_token(shown_token(request), token)) return Answer::Unhandled;
    response.set_header("WWW-Authenticate", "Bearer");
    refuse(response, 401, "this address needs its token: Authorization: Bearer TOKEN, or ?token=TOKEN\n");
    return Answer::Handled;
  });
}

void StatusServer::Impl::set_up(bool loopback, const std::string& token) {
  guard(loopback, token);
  serve_snapshot("/status", &StatusSnapshot::status_json, "application/json");
  serve_snapshot("/metrics", &StatusSnapshot::metrics_text, "text/plain; version=0.0.4; charset=utf-8");
  serve_snapshot("/updates", [](const StatusSnapshot& shown) { return shown.updates(); }, "application/octet-stream");
  serve_snapshot("/history", &StatusSnapshot::history_json, "application/json");
  serve_snapshot("/events", &StatusSnapshot::events_json, "application/json");
  serve_snapshot("/figures", &StatusSnapshot::figures_json, "application/json");
  server.Get("/healthz", [this](const httplib::Request&, httplib::Response& response) {
    const bool ready = current() != nullptr;
    response.status = ready ? 200 : 503;
    response.set_content(ready ? "ok\n" : "starting\n", "text/plain");
  });
  server.Get("/", [](const httplib::Request&, httplib::Response& response) {
    response.set_header("Content-Security-Policy", std::string(status_page_policy));
    response.set_header("Referrer-Policy", "no-referrer");
    response.set_content(status_page.data(), status_page.size(), "text/html; charset=utf-8");
  });
}

StatusServer::StatusServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<StatusServer>> StatusServer::start(const std::string& host_port,
                                                           const std::string& token) {
  const auto wanted = net::parse_address(host_port);
  if (!wanted) return wanted.error();
  const bool loopback = net::is_loopback(wanted->host);
  if (!loopback && token.empty())
    return Error{Errc::usage, str("the status address ", host_port, " can be reached from other machines, and it asks ",
                                  "nobody for a password; use 127.0.0.1:", wanted->port,
                                  ", or set a token with --status-token FILE")};
  auto impl = std::make_unique<Impl>();
  impl->set_up(loopback, token);
  if (Result<void> bound = impl->listener.bind(*wanted); !bound) return bound.error();
  if (Result<void> running = impl->listener.run(); !running) return running.error();
  return std::unique_ptr<StatusServer>(new StatusServer(std::move(impl)));
}

StatusServer::~StatusServer() = default;

const std::string& StatusServer::address() const {
  return impl_->listener.address();
}

void StatusServer::publish(StatusSnapshot snapshot) {
  auto next = std::make_shared<const StatusSnapshot>(std::move(snapshot));
  const std::lock_guard<std::mutex> hold(impl_->mutex);
  impl_->snapshot.swap(next);  // the old one goes after the lock does
}

}  // namespace rumor::daemon
