// HttpListener: what HTTP servers of this program have in common: limits against clients that dawdle, an address that
// nobody else listens on, a thread.
//
// Slow to compile, since it includes httplib.h: for .cc files of servers alone.
//
// Threads: serves on threads of its own. The owner adds its handlers to `server` before run(), and must outlive them:
// the destructor waits for requests under way.
#pragma once

#include <httplib.h>

#include <atomic>
#include <string>
#include <thread>

#include "gossip/asio/address.h"
#include "runtime/base/result.h"

namespace rumor::daemon {

class HttpListener {
 public:
  // `purpose`: for errors, as in "cannot serve PURPOSEon 127.0.0.1:8001": "status " or empty. `option` names the
  // address on the command line. 1 s for a request to arrive, one request a connection.
  HttpListener(std::string purpose, std::string option, std::size_t threads, std::size_t body_bytes_max);
  // Stops serving: at once as a rule, within about a second when a client has connected and dawdles.
  ~HttpListener();
  HttpListener(const HttpListener&) = delete;
  HttpListener& operator=(const HttpListener&) = delete;

  // Port 0 picks a free one. Errors: Errc::io, naming the address, the system's reason and the option.
  Result<void> bind(const net::Address& wanted);
  // Returns when it serves: only then can the destructor end it. Errors: Errc::io.
  Result<void> run();

  // With the real port.
  const std::string& address() const { return address_; }

  httplib::Server server;

 private:
  std::string purpose_, option_, address_;
  std::thread thread_;
  std::atomic<bool> ended_ = false;  // the thread has left the server
};

}  // namespace rumor::daemon
