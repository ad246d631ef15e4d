#include "runtime/daemon/loop/run_probe.h"

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "gossip/asio/transport.h"
#include "gossip/wire/wire.h"
#include "runtime/base/sha256.h"
#include "runtime/base/text.h"

namespace rumor::daemon {

namespace {

constexpr Duration dial_again = 500ms, look_again = 100ms;

// The id of no run: nobody finds one with this hash.
RunId no_run() {
  constexpr std::string_view question = "which run is this?";
  return RunId::from(
      sha256({reinterpret_cast<const std::uint8_t*>(question.data()), question.size()}).view().first(RunId::size));
}

class Probe final : net::TransportEvents {
 public:
  explicit Probe(const std::vector<std::string>& seeds) : seeds_(seeds) {}

  Result<FoundRun> ask(Duration patience, const std::function<bool()>& gives_up) {
    for (const std::string& seed : seeds_) transport_.dial(seed);
    const auto until = std::chrono::steady_clock::now() + patience;
    while (!io_.stopped() && !gives_up() && std::chrono::steady_clock::now() < until)
      io_.run_until(std::min(until, std::chrono::steady_clock::now() + look_again));
    transport_.stop();
    if (answer_) return std::move(*answer_);
    std::string tried;
    for (const auto& [seed, trouble] : troubles_) tried += str(tried.empty() ? "" : "; ", seed, ": ", trouble);
    return Error{Errc::not_found,
                 str("no peer tells which run it trains (", tried.empty() ? "no answer" : tried,
                     "): taking the run's weights wants a peer that has them; the first peer of a run has no seeds")};
  }

 private:
  void on_link_up(const gossip::LinkUp& up) override {
    dialled_[up.link] = up.remote_address;
    gossip::Hello hello;
    hello.run = no_run();
    hello.stream = gossip::stream_of(transport_.id(), 1);
    hello.self = {.node = transport_.id(), .number = 1, .addresses = {}};
    transport_.send(up.link, encode(hello), gossip::Lane::control);
  }
  void on_frame(gossip::LinkId link, BytesView bytes) override {
    const auto frame = gossip::decode(bytes);
    if (frame && std::holds_alternative<gossip::Hello>(*frame)) return;  // it has not heard ours yet
    const auto* reject = frame ? std::get_if<gossip::Reject>(&*frame) : nullptr;
    if (reject != nullptr && reject->code == gossip::Reject::Code::other_run) {
      answer_ = FoundRun{reject->run, reject->run_name, reject->parts, reject->start};
    } else {
      answer_ = Error{Errc::mismatch, str("the seed ", dialled_[link], " did not tell its run: ",
                                          reject != nullptr ? reject->text : "it speaks another protocol")};
    }
    io_.stop();
  }
  void on_link_down(gossip::LinkId link, const std::string& reason) override {
    on_dial_failed(dialled_[link], reason);
  }
  void on_dial_failed(const std::string& address, const std::string& reason) override {
    troubles_[address] = reason;
    auto timer = std::make_shared<asio::steady_timer>(io_, dial_again);
    timer->async_wait([this, timer, address](const asio::error_code& error) {
      if (!error) transport_.dial(address);
    });
  }
  void on_backlog(gossip::LinkId, bool) override {}

  const std::vector<std::string>& seeds_;
  asio::io_context io_;
  net::Transport transport_{io_, net::Identity::ephemeral(), *this};
  std::map<gossip::LinkId, std::string> dialled_;
  std::map<std::string, std::string> troubles_;
  std::optional<Result<FoundRun>> answer_;
};

}  // namespace

Result<FoundRun> ask_for_run(const std::vector<std::string>& seeds, Duration patience,
                             const std::function<bool()>& gives_up) {
  return Probe(seeds).ask(patience, gives_up);
}

}  // namespace rumor::daemon
