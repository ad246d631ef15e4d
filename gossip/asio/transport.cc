#include "gossip/asio/transport.h"

#include <map>
#include <set>
#include <vector>

#include "gossip/asio/connection.h"
#include "gossip/asio/dialer.h"
#include "gossip/asio/listener.h"

namespace rumor::net {
namespace {

using asio::ip::tcp;
using gossip::LinkId;

constexpr std::size_t unauthenticated_max = 64;
constexpr std::size_t connections_max = 512;
static_assert(unauthenticated_max < connections_max);

std::string remote_address(const tcp::socket& socket) {
  asio::error_code error;
  const tcp::endpoint endpoint = socket.remote_endpoint(error);
  if (error) return "unknown";
  return Address{endpoint.address().to_string(), endpoint.port()}.text();
}

}  // namespace

struct Transport::Impl final : ConnectionOwner {
  struct Entry {
    std::shared_ptr<Connection> connection;
    std::string address;  // as dialled, or as the socket sees it
    bool dialled = false;
    bool up = false;
  };

  Impl(asio::io_context& context, Identity own, TransportEvents& listener_of_events)
      : io(context), identity(std::move(own)), tls(identity), events(listener_of_events) {}

  void accepted(tcp::socket socket);
  void dialled(const std::string& address, Result<tcp::socket> socket);
  void add(tcp::socket socket, std::string address, bool dialled);
  void drop_oldest_unauthenticated();
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
  std::size_t unauthenticated = 0;  // accepted entries that are not up
  std::size_t links_up = 0;
  Traffic traffic;
};

// ---- from the sockets ----

void Transport::Impl::accepted(tcp::socket socket) {
  const std::string address = remote_address(socket);
  if (entries.size() >= connections_max) return events.on_refused(address, "too many connections");
  if (unauthenticated >= unauthenticated_max) drop_oldest_unauthenticated();
  add(std::move(socket), address, false);
}

void Transport::Impl::drop_oldest_unauthenticated() {
  for (auto at = entries.begin(); at != entries.end(); ++at) {
    if (at->second.up || at->second.dialled) continue;
    const Entry entry = std::move(at->second);
    entries.erase(at);
    --unauthenticated;
    entry.connection->abandon();
    return events.on_refused(entry.address, "too many connections that have not proven a key");
  }
}

void Transport::Impl::dialled(const std::string& address, Result<tcp::socket> socket) {
  if (!socket) return events.on_dial_failed(address, socket.error().text);
  add(std::move(*socket), address, true);
}

void Transport::Impl::add(tcp::socket socket, std::string address, bool dialled) {
  if (stopped) return;
  const LinkId link{++last_link};
  const auto role = dialled ? TlsSession::Role::dialler : TlsSession::Role::acceptor;
  auto connection = std::make_shared<Connection>(std::move(socket), tls, role, link, *this);
  entries[link] = {connection, std::move(address), dialled, false};
  if (!dialled) ++unauthenticated;
  connection->start();
}

void Transport::Impl::connection_open(Connection& connection) {
  Entry& entry = entries.at(connection.link());
  entry.up = true;
  ++links_up;
  if (!entry.dialled) --unauthenticated;
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
  --unauthenticated;
  events.on_refused(entry.address, reason);
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

void Transport::send(LinkId link, Bytes frame, bool control) {
  if (Connection* connection = impl_->open_connection(link)) connection->send(std::move(frame), control);
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
  impl_->links_up = impl_->unauthenticated = 0;
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
