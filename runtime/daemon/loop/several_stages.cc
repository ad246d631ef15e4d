#include "runtime/daemon/loop/several_stages.h"

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "gossip/asio/address.h"
#include "runtime/base/text.h"
#include "runtime/daemon/console/console.h"
#include "runtime/daemon/console/service_notify.h"
#include "runtime/daemon/console/stop_signals.h"
#include "runtime/daemon/loop/auto_stage.h"
#include "runtime/daemon/state/storage.h"

namespace rumor::daemon {

namespace {

std::string name_of(std::uint32_t stage) { return str("stage ", stage); }

std::string list_of(const std::vector<std::uint32_t>& stages) {
  std::string list;
  for (const std::uint32_t stage : stages) list += str(list.empty() ? "" : ",", stage);
  return list;
}

Result<void> check_several(const PeerOptions& options) {
  const std::string given = list_of(options.stages);
  for (auto one = options.stages.begin(); one != options.stages.end(); ++one)
    if (std::find(options.stages.begin(), one, *one) != one)
      return Error{Errc::usage, str("--stage ", given, ": stage ", *one, " is in it twice; name each stage once")};
  if (options.capture)
    return Error{Errc::usage, str("--stage ", given, ": --capture takes the updates of one stage; leave it out, or "
                                  "start a peer for each stage")};
  std::error_code ignored;
  if (options.state && std::filesystem::exists(*options.state + "/checkpoint.1", ignored))
    return Error{Errc::usage, str("state directory ", *options.state, " is that of one stage; --stage ", given,
                                  " keeps a directory for each stage in one: choose another with --state")};
  return {};
}

// The options of the peer of one stage, but for the seeds.
Result<PeerOptions> options_of(const PeerOptions& given, std::size_t index) {
  PeerOptions options = given;
  RunConfig& config = options.config;
  const std::uint32_t stage = given.stages[index];
  options.stages = {};
  options.stage = stage;
  if (given.state) options.state = stage_folder(*given.state, stage);
  if (!config.events.empty()) config.events += str(".stage-", stage);
  if (!config.tensorboard.empty()) config.tensorboard = stage_folder(config.tensorboard, stage);
  std::vector<std::string*> addresses = {&config.listen};
  if (!config.status.empty()) addresses.push_back(&config.status);
  for (std::string& advertised : config.advertise) addresses.push_back(&advertised);
  for (std::string* address : addresses) {
    auto own = address_behind(*address, index);
    if (!own) return own.error();
    *address = std::move(own).value();
  }
  return options;
}

// The peers of the process. All members belong to the thread that runs it, but for `stopping_`.
class SeveralPeers {
 public:
  explicit SeveralPeers(const PeerOptions& given) : given_(given) {}

  Result<PeerEnd> run() {
    Console().line(str("serves stages ", list_of(given_.stages), " of ", given_.config.pipeline.stages));
    start_next();
    io_.run();
    if (failure_) return *failure_;
    return joint_end();
  }

 private:
  struct Peer {
    PeerOptions options;
    std::thread thread = {};
    std::optional<Result<PeerEnd>> end = {};  // written by the thread, read once it has said so
  };

  // Starts the next peer, whose seeds are those before it, too.
  void start_next() {
    if (stopping_ || peers_.size() == given_.stages.size()) return;
    const std::size_t index = peers_.size();
    auto options = options_of(given_, index);
    if (!options) return fail(index, options.error());
    for (const std::string& before : listening_) options->config.seeds.push_back(before);
    options->companion = Companion{name_of(*options->stage), [this](const std::string& bound) {
                                     asio::post(io_, [this, bound] { on_listens(bound); });
                                   },
                                   [this] { return stopping_.load(); }};
    Peer& peer = *peers_.emplace_back(std::make_unique<Peer>(Peer{std::move(options).value()}));
    ++running_;
    peer.thread = std::thread([this, &peer, index] {
      peer.end = run_peer(peer.options);
      asio::post(io_, [this, index] { on_ended(index); });
    });
  }

  void on_listens(const std::string& bound) {
    listening_.push_back(dialled_here(bound));
    if (listening_.size() == given_.stages.size())
      notify_service(str("READY=1\nSTATUS=serves stages ", list_of(given_.stages)));
    start_next();
  }

  void on_ended(std::size_t index) {
    Peer& peer = *peers_[index];
    peer.thread.join();
    --running_;
    if (!peer.end->ok()) {
      fail(index, peer.end->error());
    } else {
      (*peer.end)->trainer.reset();  // its memory may be of use to the others
      if ((*peer.end)->exit_status != 0) stop(str("stage ", given_.stages[index], " has ended with status ",
                                                  (*peer.end)->exit_status, ": the others end, too"));
    }
    if (running_ == 0) signals_.stop();
  }

  // The first error is the one that counts: the others end because of it.
  void fail(std::size_t index, const Error& error) {
    const std::string text = str(name_of(given_.stages[index]), ": ", error.text);
    if (!failure_) failure_ = Error{error.code, text};
    if (running_ == 0) return signals_.stop();
    stop(text + "; the other stages end, too");
  }

  void stop(const std::string& why) {
    if (stopping_.exchange(true)) return;
    notify_service("STOPPING=1");
    Console().line(why);
  }

  void on_signal(int signal) {
    if (stopping_) std::_Exit(128 + signal);
    stop("stopping: finishing the steps, saving, saying goodbye (once more ends at once)");
  }

  PeerEnd joint_end() {
    PeerEnd joint;
    nlohmann::ordered_json each = nlohmann::ordered_json::array();
    for (const auto& peer : peers_) {
      PeerEnd& end = **peer->end;
      joint.exit_status = std::max(joint.exit_status, end.exit_status);
      if (joint.trouble.empty()) joint.trouble = end.trouble;
      each.push_back(nlohmann::ordered_json::parse(end.status_json));
    }
    joint.status_json = nlohmann::ordered_json{{"stages", std::move(each)}}.dump(2) + "\n";
    return joint;
  }

  const PeerOptions& given_;
  asio::io_context io_;
  StopSignals signals_{io_, [this](int signal) { on_signal(signal); }};
  std::atomic<bool> stopping_{false};
  std::vector<std::unique_ptr<Peer>> peers_;  // in the order of the list, as far as they were started
  std::vector<std::string> listening_;        // where this process dials them
  std::size_t running_ = 0;
  std::optional<Error> failure_;
};

}  // namespace

Result<std::string> address_behind(const std::string& first, std::size_t index) {
  auto address = net::parse_address(first);
  if (!address) return address.error();
  if (address->port == 0) return first;
  const std::size_t port = address->port + index;
  if (port > 65'535)
    return Error{Errc::usage, str(first, ": stage ", index + 1, " of the list would have port ", port,
                                  ", and 65535 is the last; choose a lower one")};
  address->port = static_cast<std::uint16_t>(port);
  return address->text();
}

std::string dialled_here(const std::string& bound) {
  auto address = net::parse_address(bound);
  if (!address) return bound;
  if (address->host == "0.0.0.0") address->host = "127.0.0.1";
  if (address->host == "::") address->host = "::1";
  return address->text();
}

Result<PeerEnd> run_several_stages(const PeerOptions& options) {
  if (auto fits = check_several(options); !fits) return fits.error();
  std::optional<StateLock> lock;
  if (options.state) {
    auto held = StateLock::acquire(*options.state);
    if (!held) return held.error();
    lock = std::move(held).value();
  }
  return SeveralPeers(options).run();
}

}  // namespace rumor::daemon
