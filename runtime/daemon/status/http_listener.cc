#include "runtime/daemon/status/http_listener.h"

#include <sys/socket.h>

#include <cctype>
#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/base/text.h"
#include "runtime/base/time.h"

namespace rumor::daemon {

HttpListener::HttpListener(std::string purpose, std::string option, std::size_t threads, std::size_t body_bytes_max)
    : purpose_(std::move(purpose)), option_(std::move(option)) {
  server.new_task_queue = [threads] { return new httplib::ThreadPool(threads); };  // the server takes and deletes it
  server.set_payload_max_length(body_bytes_max);
  server.set_keep_alive_max_count(1);  // an idle connection would hold up the end
  server.set_keep_alive_timeout(1);
  server.set_read_timeout(1, 0);
  server.set_write_timeout(1, 0);
  server.set_tcp_nodelay(true);
  // The library's own choice lets a second server share the port unseen.
  server.set_socket_options([](int socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
}

HttpListener::~HttpListener() {
  server.stop();
  if (thread_.joinable()) thread_.join();
}

Result<void> HttpListener::bind(const net::Address& wanted) {
  errno = 0;
  int port = wanted.port;
  if (port == 0) {
    port = server.bind_to_any_port(wanted.host.c_str());
  } else if (!server.bind_to_port(wanted.host.c_str(), port)) {
    port = -1;
  }
  if (port > 0) {
    address_ = net::Address{wanted.host, static_cast<std::uint16_t>(port)}.text();
    return {};
  }
  // The library closes the socket after a failed bind; that leaves errno alone unless closing fails too.
  std::string cause = errno == 0 ? "the address cannot be used" : std::strerror(errno);
  cause[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(cause[0])));
  return Error{Errc::io,
               str("cannot serve ", purpose_, "on ", wanted.text(), ": ", cause, "; choose another with ", option_)};
}

Result<void> HttpListener::run() {
  try {
    thread_ = std::thread([this] {
      server.listen_after_bind();
      ended_ = true;
    });
  } catch (const std::system_error& refused) {
    return Error{Errc::io, str("cannot serve ", purpose_, "on ", address_, ": the system starts no thread: ",
                               refused.code().message())};
  }
  while (!server.is_running() && !ended_) std::this_thread::sleep_for(1ms);
  if (!ended_) return {};
  thread_.join();
  return Error{Errc::io, str("cannot serve ", purpose_, "on ", address_, ": the system takes no connections there")};
}

}  // namespace rumor::daemon
