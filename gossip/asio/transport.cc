#include "gossip/asio/transport.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "gossip/asio/connection.h"
#include "gossip/asio/dialer.h"
#include "gossip/asio/listener.h"
#include "runtime/base/limits.h"
#include "runtime/base/text.h"

namespace rumor::net {
namespace {

using asio::ip::tcp;
using gossip::LinkId;

static_assert(limits::unproven_max < limits::connections_max);

Address remote_address(const tcp::socket& socket) {
  asio::error_code error;
  const tcp::endpoint endpoint = socket.remote_endpoint(error);
  if (error) return {"unknown", 0};
  return {endpoint.address().to_string(), endpoint.port()};
}

// From this machine many peers may come at once.
std::size_t unproven_max_of(const std::string& host) {
  return is_loopback(host) ? limits::unproven_max : limits::unproven_per_address_max;
}

}  // namespace

struct Transport::Impl final : ConnectionOwner {
  struct Entry {
    std::shared_ptr<Connection> connection;
    std::string address;  // as dialled, or as the socket sees it
    std::string host;     // of one that came to us
    bool dialled = false;
    bool up = false;
  };

  Impl(asio::io_context& context, Identity own, TransportEvents& listener_of_events)
      : io(context), identity(std::move(own)), tls(identity), events(listener_of_events) {}

  void accepted(tcp::socket socket);
  void dialled(const std::string& address, Result<tcp::socket> socket);
  void add(tcp::socket socket, std::string address, std::string host, bool dialled);
  // Drops one of this host, or one of all.
  void drop_oldest_unproven(const std::string* host);
  std::size_t unproven_of(const std::string& host) const;
  // Ends the connection that most waits on while too much waits on all together.
  void bound_queues();
  Connection* open_connection(LinkId link);

  void connection_open(Connection& connection) override;
  void connection_frame(Connection& connection, BytesView frame) override;
  void connection_backlog(Connection& connection, bool full) override;
  void connection_bytes(std::size_t sent, std::size_t received) override;
  void connection_closed(Connection& connection, const std::string& reason) override;

  asio::io_context& io;
  const Identity identity;
  const TlsContext tls;
  TransportEvents& events;
  bool stopped = false;

  std::vector<std::shared_ptr<Listener>> listeners;
  std::set<std::shared_ptr<Dial>> dials;
  std::map<LinkId, Entry> entries;  // ids count up: the first is the oldest
  std::uint64_t last_link = 0;
  std::size_t unproven = 0;  // accepted entries that are not up
  std::size_t links_up = 0;
  std::size_t first_frame_bytes_max = rumor::limits::hello_bytes_max;
  Traffic traffic;
  std::shared_ptr<RateLimits> limits = std::make_shared<RateLimits>();
};

// ---- from the sockets ----

void Transport::Impl::accepted(tcp::socket socket) {
  const Address address = remote_address(socket);
  if (entries.size() >= limits::connections_max)
    return events.on_refused(address.text(), "too many connections");
  if (unproven_of(address.host) >= unproven_max_of(address.host))
    drop_oldest_unproven(&address.host);
  else if (unproven >= limits::unproven_max)
    drop_oldest_unproven(nullptr);
  add(std::move(socket), address.text(), address.host, false);
}

std::size_t Transport::Impl::unproven_of(const std::string& host) const {
  return static_cast<std::size_t>(std::count_if(entries.begin(), entries.end(), [&](const auto& entry) {
    return !entry.second.up && !entry.second.dialled && entry.second.host == host;
  }));
}

void Transport::Impl::drop_oldest_unproven(const std::string* host) {
  for (auto at = entries.begin(); at != entries.end(); ++at) {
    if (at->second.up || at->second.dialled || (host != nullptr && at->second.host != *host)) continue;
    const Entry entry = std::move(at->second);
    entries.erase(at);
    --unproven;
    entry.connection->abandon();
    return events.on_refused(entry.address, "too many connections that have not proven a key");
  }
}

void Transport::Impl::dialled(const std::string& address, Result<tcp::socket> socket) {
  if (!socket) return events.on_dial_failed(address, socket.error().text);
  add(std::move(*socket), address, {}, true);
}

void Transport::Impl::add(tcp::socket socket, std::string address, std::string host, bool dialled) {
  if (stopped) return;
  const LinkId link{++last_link};
  const auto role = dialled ? TlsSession::Role::dialler : TlsSession::Role::acceptor;
  auto connection =
      std::make_shared<Connection>(std::move(socket), tls, role, link, *this, limits, first_frame_bytes_max);
  entries[link] = {connection, std::move(address), std::move(host), dialled, false};
  if (!dialled) ++unproven;
  connection->start();
}

void Transport::Impl::connection_open(Connection& connection) {
  Entry& entry = entries.at(connection.link());
  entry.up = true;
  ++links_up;
  if (!entry.dialled) --unproven;
  gossip::LinkUp up;
  up.link = connection.link();
  up.peer = connection.peer();
  up.dialled_by_us = entry.dialled;
  up.remote_address = entry.address;
  events.on_link_up(up);
}

void Transport::Impl::connection_frame(Connection& connection, BytesView frame) {
  events.on_frame(connection.link(), frame);
}

void Transport::Impl::connection_backlog(Connection& connection, bool full) {
  events.on_backlog(connection.link(), full);
}

void Transport::Impl::connection_bytes(std::size_t sent, std::size_t received) {
  traffic.sent_bytes += sent;
  traffic.received_bytes += received;
}

void Transport::Impl::connection_closed(Connection& connection, const std::string& reason) {
  const auto at = entries.find(connection.link());
  const Entry entry = std::move(at->second);
  entries.erase(at);
  if (entry.up) {
    --links_up;
    return events.on_link_down(connection.link(), reason);
  }
  if (entry.dialled) return events.on_dial_failed(entry.address, reason);
  --unproven;
  events.on_refused(entry.address, reason);
}

void Transport::Impl::bound_queues() {
  std::size_t total = 0, most = 0;
  Connection* longest = nullptr;
  for (const auto& [link, entry] : entries) {
    const std::size_t queued = entry.connection->queued_bytes();
    total += queued;
    if (longest == nullptr || queued > most) longest = entry.connection.get(), most = queued;
  }
  if (total > rumor::limits::queues_bytes_max)
    longest->drop(str("the peer does not read: ", most >> 20, " MiB wait for it, and more for others"));
}

Connection* Transport::Impl::open_connection(LinkId link) {
  const auto at = entries.find(link);
  return at == entries.end() || !at->second.up ? nullptr : at->second.connection.get();
}

// ---- from the driver ----

Transport::Transport(asio::io_context& io, Identity identity, TransportEvents& events)
    : impl_(std::make_unique<Impl>(io, std::move(identity), events)) {}

Transport::~Transport() {
  stop();
}

Result<std::string> Transport::listen(const std::string& host_port) {
  const Result<Address> address = parse_address(host_port);
  if (!address) return address.error();
  Impl* impl = impl_.get();
  auto listener =
      std::make_shared<Listener>(impl->io, [impl](tcp::socket socket) { impl->accepted(std::move(socket)); });
  Result<std::string> bound = listener->open(*address);
  if (bound) impl->listeners.push_back(std::move(listener));
  return bound;
}

void Transport::dial(const std::string& host_port) {
  Impl* impl = impl_.get();
  if (impl->stopped) return;
  // The callback names its own attempt to forget it; the attempt drops the callback when it is over.
  auto self = std::make_shared<std::weak_ptr<Dial>>();
  auto attempt =
      std::make_shared<Dial>(impl->io, host_port, [impl, self, host_port](Result<tcp::socket> socket) {
        impl->dials.erase(self->lock());
        impl->dialled(host_port, std::move(socket));
      });
  *self = attempt;
  impl->dials.insert(attempt);
  attempt->start();
}

void Transport::limit_rates(std::uint64_t up_bytes_per_second, std::uint64_t down_bytes_per_second) {
  impl_->limits = std::make_shared<RateLimits>(
      RateLimits{RateLimit(up_bytes_per_second), RateLimit(down_bytes_per_second), impl_->limits->marks});
}

void Transport::mark_backlogs(const gossip::BacklogMarks& marks) { impl_->limits->marks = marks; }

void Transport::limit_first_frame(std::size_t bytes_max) {
  impl_->first_frame_bytes_max = bytes_max;
}

void Transport::send(LinkId link, gossip::OutFrame frame, gossip::Lane lane) {
  Connection* connection = impl_->open_connection(link);
  if (connection == nullptr) return;
  connection->send(std::move(frame), lane);
  if (connection->queued_bytes() > limits::link_backlog_high) impl_->bound_queues();
}

void Transport::close(LinkId link, const std::string& reason) {
  if (Connection* connection = impl_->open_connection(link)) connection->close(reason);
}

void Transport::stop() {
  if (impl_->stopped) return;
  impl_->stopped = true;
  for (const auto& listener : impl_->listeners) listener->close();
  for (const auto& attempt : impl_->dials) attempt->cancel();
  for (const auto& [link, entry] : impl_->entries) entry.connection->abandon();
  impl_->listeners.clear();
  impl_->dials.clear();
  impl_->entries.clear();
  impl_->links_up = impl_->unproven = 0;
}

NodeId Transport::id() const {
  return impl_->identity.id();
}
Traffic Transport::traffic() const {
  return impl_->traffic;
}
std::size_t Transport::links() const {
  return impl_->links_up;
}

std::size_t Transport::queued_bytes(LinkId link) const {
  const Connection* connection = impl_->open_connection(link);
  return connection == nullptr ? 0 : connection->queued_bytes();
}

}  // namespace rumor::net
