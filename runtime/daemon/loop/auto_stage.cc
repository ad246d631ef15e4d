#include "runtime/daemon/loop/auto_stage.h"

#include <algorithm>
#include <asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <sstream>
#include <utility>

#include "runtime/base/text.h"
#include "runtime/daemon/admission/peer_admission.h"
#include "runtime/daemon/console/console.h"
#include "runtime/daemon/console/stop_signals.h"
#include "runtime/daemon/loop/stage_training.h"
#include "runtime/daemon/stages/stage_census.h"
#include "runtime/daemon/stages/stage_greeting.h"
#include "runtime/daemon/state/storage.h"

namespace rumor::daemon {

namespace {

constexpr std::size_t address_file_bytes_max = 1 << 20;

Result<void> check_auto(const PeerOptions& options) {
  const RunConfig& config = options.config;
  if (config.pipeline.stages < 2)
    return Error{Errc::usage, "--stage auto: pipeline.stages is 1, so the model is not cut; set pipeline.stages, or "
                              "leave --stage out"};
  if (options.capture)
    return Error{Errc::usage, "--capture takes the updates of one stage; give --stage a number with it"};
  if (auto data = models::load_data(config.data, config.model.context); !data)
    return Error{data.error().code, "--stage auto: this peer may have to serve stage 1, which reads the data: " +
                                        data.error().text};
  std::error_code ignored;
  if (options.state && std::filesystem::exists(*options.state + "/checkpoint.1", ignored))
    return Error{Errc::usage, str("state directory ", *options.state, " is that of one stage; --stage auto keeps a "
                                  "directory for each stage in one: choose another with --state")};
  return {};
}

// The stage whose checkpoint is the newest.
std::optional<std::uint32_t> kept_stage(const std::string& home, std::uint32_t stages) {
  std::optional<std::uint32_t> kept;
  std::filesystem::file_time_type newest{};
  for (std::uint32_t stage = 1; stage <= stages && !home.empty(); ++stage) {
    std::error_code missing;
    const auto time = std::filesystem::last_write_time(stage_folder(home, stage) + "/checkpoint.1", missing);
    if (missing || (kept && time <= newest)) continue;
    kept = stage;
    newest = time;
  }
  return kept;
}

// Seeds, and members that this peer has met in any stage.
std::vector<std::string> first_addresses(const PeerOptions& options, const std::string& home) {
  std::vector<std::string> addresses = options.config.seeds;
  for (std::uint32_t stage = 1; stage <= options.config.pipeline.stages && !home.empty(); ++stage) {
    const auto text = read_file(stage_folder(home, stage) + "/addresses", address_file_bytes_max);
    if (!text) continue;
    std::istringstream lines(std::string(text->begin(), text->end()));
    for (std::string line; std::getline(lines, line);)
      if (std::find(addresses.begin(), addresses.end(), line) == addresses.end()) addresses.push_back(line);
  }
  return addresses;
}

// Errors: those of serve_stage() and PeerAdmission::open().
Result<StageChoice> first_stage(const PeerOptions& options, const StageSearch& search) {
  PeerOptions any = options;
  any.stage = 1;
  const auto staged = serve_stage(any);
  if (!staged) return staged.error();
  const auto admission = PeerAdmission::open(options.config, search.home);
  if (!admission) return admission.error();
  auto members = ask_for_members({search.identity, staged->pipeline->self.pipeline,
                                  admission->admit(search.identity.id()), search.known});
  std::vector<StagePeer> found;
  asio::io_context io;
  StageCensus census(io);
  census.look(std::move(members), [&](std::vector<StagePeer> live) { found = std::move(live); });
  io.run();
  const std::uint32_t stages = options.config.pipeline.stages;
  return choose_stage(search.identity.id(), stages, found, kept_stage(search.home, stages));
}

// Serves one stage after the other until the peer ends.
Result<PeerEnd> serve_stages(PeerOptions options, StageChoice choice) {
  asio::io_context io;
  bool came = false;
  const StopSignals signals(io, [&](int) { came = true; });  // between two stages, too
  options.search->stopped = [&] { return io.poll(), came; };
  const auto begun = std::chrono::steady_clock::now();
  const auto until = options.until_seconds;
  for (;;) {
    options.stage = choice.stage;
    options.search->why = choice.why;
    if (!options.search->home.empty()) options.state = stage_folder(options.search->home, choice.stage);
    Console().line(str("serves stage ", choice.stage, " of ", options.config.pipeline.stages, ": ", choice.why));
    auto ended = run_peer(options);
    if (!ended || !ended->move || options.search->stopped()) return ended;
    choice = *ended->move;
    options.search->known = std::move(ended->known);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begun;
    if (until) options.until_seconds = std::max(0.0, *until - passed.count());
  }
}

}  // namespace

std::string stage_folder(const std::string& home, std::uint32_t stage) { return str(home, "/stage-", stage); }

Result<PeerEnd> run_auto_stage(const PeerOptions& given) {
  if (auto fits = check_auto(given); !fits) return fits.error();
  PeerOptions options = given;
  options.stage_auto = false;
  const std::string home = given.state.value_or("");
  std::optional<StateLock> lock;
  if (!home.empty()) {
    auto held = StateLock::acquire(home);
    if (!held) return held.error();
    lock = std::move(held).value();
  }
  auto identity = home.empty() ? net::Identity::ephemeral() : net::Identity::load_or_create(home + "/identity.pem");
  if (!identity) return identity.error();
  options.search = StageSearch{std::move(identity).value(), home, {}, first_addresses(given, home)};
  auto choice = first_stage(options, *options.search);
  if (!choice) return choice.error();
  return serve_stages(std::move(options), std::move(choice).value());
}

}  // namespace rumor::daemon
