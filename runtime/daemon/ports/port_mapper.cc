#include "runtime/daemon/ports/port_mapper.h"

#include <algorithm>
#include <asio/post.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "gossip/asio/address.h"
#include "runtime/base/text.h"

namespace rumor::daemon {

namespace {

using std::chrono::seconds;

constexpr seconds renew_within{600}, retry_after{300}, end_within{2};

std::string behind_another(const PortRequest& request, const std::string& outside) {
  return str("the router ", request.gateway.router, " is itself behind another: its address outside is ", outside,
             "; open a port there too, or ask the provider for a public address");
}

// The router's address outside, checked: a router may report one that is not public.
Result<std::string> outside_of(PortProtocol& protocol) {
  Result<std::string> outside = protocol.outside_address();
  if (outside && !is_ipv4(*outside)) return Error{Errc::io, "it has no address outside: its own link is down"};
  return outside;
}

// A mapping or its renewal. No address in it: nothing is to be had from this router. Errors: as map().
Result<PortNews> try_to_map(const PortRequest& request, PortProtocol& protocol, seconds& again) {
  const Result<std::string> outside = outside_of(protocol);
  if (!outside) return outside.error();
  if (is_private(*outside)) return PortNews{"", behind_another(request, *outside)};
  const Result<PortLease> lease = protocol.map();
  if (!lease) return lease.error();
  const bool permanent = lease->lasts == seconds{0};
  again = permanent ? renew_within : std::clamp(lease->lasts / 2, seconds{1}, renew_within);
  const std::string address = net::Address{*outside, lease->port}.text();
  return PortNews{address, str(address, " leads here, by ", protocol.name(), " of the router ", request.gateway.router,
                               permanent ? ", until it is taken back" : "")};
}

}  // namespace

// Shared with the thread, which may outlive the mapper.
struct PortMapper::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool stopping = false, ended = false;
  asio::io_context* loop = nullptr;  // null: nobody listens any more
  Told told;
  PortRequest request;

  bool is_stopping() {
    const std::lock_guard lock(mutex);
    return stopping;
  }
  void tell(const PortNews& news) {
    const std::lock_guard lock(mutex);
    if (loop != nullptr) asio::post(*loop, [told = told, news] { told(news); });
  }
  void run() {
    std::unique_ptr<PortProtocol> working;
    PortNews last;
    while (!is_stopping()) {
      seconds again{};
      const PortNews news = open_port(request, [this] { return is_stopping(); }, working, again);
      if (news != last && !is_stopping()) tell(news);
      last = news;
      std::unique_lock lock(mutex);
      changed.wait_for(lock, again, [this] { return stopping; });
    }
    if (working) working->unmap();
    const std::lock_guard lock(mutex);
    ended = true;
    changed.notify_all();
  }
};

PortNews open_port(const PortRequest& request, const Stopping& stopping, std::unique_ptr<PortProtocol>& working,
                   seconds& again) {
  if (working) {
    auto renewed = try_to_map(request, *working, again);
    if (renewed && !renewed->address.empty()) return *renewed;
    working.reset();
  }
  again = retry_after;
  auto candidates = port_protocols(request, stopping);
  if (candidates.empty()) return {"", no_port_protocols};
  std::string tried;
  for (auto& protocol : candidates) {
    if (stopping()) break;
    auto news = try_to_map(request, *protocol, again);
    if (!news) {
      tried += str(tried.empty() ? "" : "; ", protocol->name(), ": ", news.error().text);
      continue;
    }
    if (!news->address.empty()) working = std::move(protocol);
    return *news;
  }
  return {"", str("the router ", request.gateway.router, " opens no port (", tried,
                  "); allow UPnP or NAT-PMP in its settings, or forward port ", request.port,
                  " there by hand and set network.advertise")};
}

Result<std::string> ask_router(const PortRequest& request) {
  std::string tried;
  for (auto& protocol : port_protocols(request, [] { return false; })) {
    const Result<std::string> outside = outside_of(*protocol);
    if (!outside) {
      tried += str(tried.empty() ? "" : "; ", protocol->name(), ": ", outside.error().text);
      continue;
    }
    if (is_private(*outside)) return Error{Errc::io, behind_another(request, *outside)};
    return str("the router ", request.gateway.router, " speaks ", protocol->name(), ", its address outside is ",
               *outside);
  }
  if (tried.empty()) return Error{Errc::not_found, no_port_protocols};
  return Error{Errc::not_found, str("the router ", request.gateway.router, " says nothing (", tried, ")")};
}

PortMapper::PortMapper(asio::io_context& loop, const PortRequest& request, Told told)
    : state_(std::make_shared<State>()) {
  state_->loop = &loop;
  state_->told = std::move(told);
  state_->request = request;
  std::thread([state = state_] { state->run(); }).detach();
}

void PortMapper::stop() {
  const std::lock_guard lock(state_->mutex);
  state_->stopping = true;
  state_->loop = nullptr;
  state_->changed.notify_all();
}

PortMapper::~PortMapper() {
  stop();
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_for(lock, end_within, [this] { return state_->ended; });
}

}  // namespace rumor::daemon
