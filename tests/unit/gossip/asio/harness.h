// Two ends on loopback, for tests of the transport: an event loop that runs until something is so, and an end
// that writes down all that it is told.
//
// Thread: everything runs in the test's own thread, inside Loop::until().
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gossip/asio/transport.h"

namespace rumor::net::test {

struct Loop {
  asio::io_context io;

  // Runs the loop until `condition` holds; false when it does not within 5 s (an end for a test that fails,
  // not a time that a passing one takes).
  bool until(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      io.restart();
      io.run_one_for(std::chrono::milliseconds(50));
    }
    return true;
  }
  // Runs whatever is ready, so that an event that must not come has had its chance.
  void run_for(std::chrono::milliseconds time = std::chrono::milliseconds(30)) {
    io.restart();
    io.run_for(time);
  }
};

// A transport and its diary.
struct End final : TransportEvents {
  explicit End(Loop& loop, Identity identity = Identity::ephemeral()) : transport(loop.io, identity, *this) {
    transport.limit_first_frame(limits::frame_bytes_max);
  }

  std::string listen() {
    const Result<std::string> bound = transport.listen("127.0.0.1:0");
    return bound.ok() ? *bound : std::string();
  }

  void on_link_up(const gossip::LinkUp& up) override { ups.push_back(up); }
  void on_frame(gossip::LinkId link, BytesView frame) override {
    ++frame_count;
    if (on_each_frame) on_each_frame(link, frame);
    if (keep_frames) frames.emplace_back(frame.begin(), frame.end());
  }
  void on_link_down(gossip::LinkId link, const std::string& reason) override {
    downs[link].push_back(reason);
  }
  void on_dial_failed(const std::string& address, const std::string& reason) override {
    failed_dials.emplace_back(address, reason);
  }
  void on_backlog(gossip::LinkId, bool full) override { backlogs.push_back(full); }
  void on_refused(const std::string&, const std::string& reason) override { refusals.push_back(reason); }

  gossip::LinkId link() const { return ups.back().link; }

  Transport transport;
  std::vector<gossip::LinkUp> ups;
  std::vector<Bytes> frames;
  std::size_t frame_count = 0;
  bool keep_frames = true;
  std::function<void(gossip::LinkId, BytesView)> on_each_frame;
  std::map<gossip::LinkId, std::vector<std::string>> downs;
  std::vector<std::pair<std::string, std::string>> failed_dials;
  std::vector<bool> backlogs;
  std::vector<std::string> refusals;
};

// A listening end and one that has dialled it; both up once connect() is true.
struct Pair {
  Loop loop;
  End server{loop};
  End client{loop};
  std::string address = server.listen();

  bool connect() {
    const std::size_t before = client.ups.size();
    client.transport.dial(address);
    return loop.until([&] { return client.ups.size() > before && server.ups.size() == client.ups.size(); });
  }
};

// `size` bytes that start with `number` and depend on it.
inline Bytes patterned(std::uint32_t number, std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::uint8_t>(i < 4 ? number >> (8 * i) : number * 31 + i * 7);
  return bytes;
}

}  // namespace rumor::net::test
