// StopSignals: SIGINT and SIGTERM, which would otherwise end the process at once, as calls.
//
// Thread: the one that runs the io_context. While it lives, the io_context does not run out of work, unless stop() was
// called.
#pragma once

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <csignal>
#include <functional>
#include <utility>

namespace rumor::daemon {

class StopSignals {
 public:
  // `came` is called at each signal, with its number.
  StopSignals(asio::io_context& io, std::function<void(int signal)> came)
      : signals_(io, SIGINT, SIGTERM), came_(std::move(came)) {
    await();
  }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // No call follows, and as long as this lives a signal does nothing.
  void stop() { signals_.cancel(); }

 private:
  void await() {
    signals_.async_wait([this](const asio::error_code& error, int signal) {
      if (error) return;
      await();
      came_(signal);
    });
  }

  asio::signal_set signals_;
  std::function<void(int)> came_;
};

}  // namespace rumor::daemon
