// rumor sim --daemons: real peers on loopback, in real time. The main job of tools/quickstart.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <nlohmann/json.hpp>

#include "models/data/dataset.h"
#include "models/families/model.h"
#include "models/weights/start_weights.h"
#include "runtime/base/text.h"
#include "runtime/daemon/console/console.h"
#include "runtime/daemon/state/storage.h"
#include "runtime/daemon/status/http_get.h"
#include "runtime/replica/checkpoint.h"
#include "runtime/sim/world/agreement.h"
#include "tools/sim/child_processes.h"
#include "tools/sim/reserved_ports.h"
#include "tools/sim/sim_output.h"
#include "tools/words/command.h"

namespace rumor::tools {

namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// The peers' files: gone with the run, unless a peer failed and its log is wanted.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string pattern = (fs::temp_directory_path() / "rumor-XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    if (!keep_ && !path_.empty()) fs::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  void keep() { keep_ = true; }
  const std::string& path() const { return path_; }
  std::string file(std::size_t peer, const char* suffix) const {
    return str(path_, "/peer-", peer + 1, suffix);
  }

 private:
  std::string path_;
  bool keep_ = false;
};

class DaemonRun {
 public:
  DaemonRun(const SimCommand& command, const RunConfig& config)
      : command_(command), config_(config), last_(command.nodes) {}

  int run();

 private:
  Result<void> start();
  bool poll();
  void show();
  void record(const sim::CurvePoint& point);
  Result<void> read_final();
  sim::SimResult result() const;
  double disagreement() const;
  Result<std::vector<float>> first_weights() const;
  void print_peers(std::FILE* to) const;
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  double sum(const char* section, const char* key) const;

  const SimCommand& command_;
  const RunConfig& config_;
  ScratchDirectory scratch_;
  ReservedPorts ports_;
  ChildProcesses children_;
  std::vector<std::uint16_t> status_ports_;
  std::vector<json> last_;  // by peer: its newest /status
  std::vector<sim::CurvePoint> curve_;
  std::vector<sim::TensorResult> tensors_;  // of the first peer, at each curve point
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  ProgressLine line_;
  double last_sent_ = 0, last_received_ = 0, last_seconds_ = 0;
};

double number(const json& object, const char* section, const char* key) {
  if (!object.contains(section)) return 0;
  return object[section].value(key, 0.0);
}

double DaemonRun::sum(const char* section, const char* key) const {
  double total = 0;
  for (const json& peer : last_) total += number(peer, section, key);
  return total;
}

Result<void> DaemonRun::start() {
  if (scratch_.path().empty())
    return Error{Errc::io, "cannot make a directory under " + fs::temp_directory_path().string()};
  const auto ports = ports_.reserve(2 * command_.nodes);
  if (!ports) return Error{ports.error().code, ports.error().text + "; choose fewer --nodes"};
  for (std::size_t i = 0; i < command_.nodes; ++i) {
    status_ports_.push_back((*ports)[command_.nodes + i]);
    std::string seeds;
    for (std::size_t k = 0; k < command_.nodes; ++k)
      if (k != i) seeds += str(seeds.empty() ? "" : ",", "127.0.0.1:", (*ports)[k]);
    std::vector<std::string> arguments = {"peer",
                                          command_.run.name,
                                          "--listen",
                                          str("127.0.0.1:", (*ports)[i]),
                                          "--status",
                                          str("127.0.0.1:", status_ports_[i]),
                                          "--state",
                                          scratch_.file(i, ""),
                                          "--shard",
                                          str(i + 1, "/", command_.nodes),
                                          "--until-samples",
                                          str(config_.samples),
                                          "--json",
                                          scratch_.file(i, ".json"),
                                          "--quiet"};
    if (!seeds.empty()) arguments.insert(arguments.end(), {"--seed", seeds});
    for (const std::string& assignment : command_.run.overrides)
      arguments.insert(arguments.end(), {"--set", assignment});
    if (auto started = children_.start(arguments, scratch_.file(i, ".log")); !started) return started.error();
  }
  return {};
}

// Asks every peer; false when one has failed.
bool DaemonRun::poll() {
  for (std::size_t i = 0; i < command_.nodes; ++i) {
    if (const auto status = children_.status(i); status && *status != 0) return false;
    const auto text = daemon::http_get(str("127.0.0.1:", status_ports_[i]), "/status");
    if (!text) continue;  // not up yet, or done already
    json parsed = json::parse(*text, nullptr, false);
    if (parsed.is_object()) last_[i] = std::move(parsed);
  }
  return true;
}

// Keeps a point for the report, with the first peer's figures of its tensors at that moment.
void DaemonRun::record(const sim::CurvePoint& point) {
  const json& first = last_[0];
  if (!first.contains("compression") || !first["compression"].contains("tensors")) return;
  const json& tensors = first["compression"]["tensors"];
  if (tensors.empty()) return;  // no step has been taken yet
  tensors_.resize(tensors.size());
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    tensors_[t].name = tensors[t].value("name", "");
    tensors_[t].params = tensors[t].value("params", std::uint64_t{0});
    tensors_[t].density.push_back(tensors[t].value("density", 0.0));
    tensors_[t].residual_rms.push_back(tensors[t].value("residual_rms", 0.0));
  }
  curve_.push_back(point);
}

void DaemonRun::show() {
  const json& first = last_[0];
  if (!first.is_object()) {
    line_.show("starting " + str(command_.nodes, " peers"));
    return;
  }
  sim::CurvePoint point;
  for (const json& peer : last_)
    if (peer.is_object()) point.samples = std::max(point.samples, peer.value("samples", std::uint64_t{0}));
  point.loss = first.value("loss", 0.0);
  if (first.contains("accuracy")) point.accuracy = first["accuracy"].get<double>();
  point.virtual_seconds = seconds();
  const double nodes = static_cast<double>(command_.nodes);
  point.sent_bytes_per_node = sum("traffic", "sent_bytes") / nodes;
  point.threshold = number(first, "compression", "threshold");
  point.density = number(first, "compression", "density");
  if (curve_.empty() || point.samples > curve_.back().samples) record(point);
  const double span = std::max(point.virtual_seconds - last_seconds_, 1e-3);
  const double sent = sum("traffic", "sent_bytes"), received = sum("traffic", "received_bytes");
  std::size_t linked = 0, alive = 0;
  bool equal = true;
  for (const json& peer : last_) {
    alive += peer.is_object() ? 1 : 0;
    equal = equal && peer.is_object() && peer.value("digests_equal", false);
    linked =
        std::max<std::size_t>(linked, peer.is_object() && peer.contains("peers") ? peer["peers"].size() : 0);
  }
  std::string text =
      str(fixed(100.0 * static_cast<double>(point.samples) / static_cast<double>(config_.samples), 0), " %  ",
          point.samples, " samples  loss ", fixed(point.loss, 3));
  if (point.accuracy) text += str("  accuracy ", fixed(*point.accuracy * 100, 1), " %");
  text += str("  peers ", alive, "  each out ", daemon::rate_text((sent - last_sent_) / span / nodes), " in ",
              daemon::rate_text((received - last_received_) / span / nodes), "  ",
              fixed(number(first, "traffic", "ratio"), 0), "x smaller  ",
              config_.has_own_models() ? "copies " : "digests ", equal ? "all equal" : "differ by what is on its way");
  line_.show(text);
  last_sent_ = sent;
  last_received_ = received;
  last_seconds_ = point.virtual_seconds;
}

Result<void> DaemonRun::read_final() {
  for (std::size_t i = 0; i < command_.nodes; ++i) {
    const auto text = read_text_file(scratch_.file(i, ".json"));
    if (!text) return text.error();
    last_[i] = json::parse(*text, nullptr, false);
    if (!last_[i].is_object()) return Error{Errc::corrupt, str("peer ", i + 1, " wrote no result")};
  }
  return {};
}

sim::SimResult DaemonRun::result() const {
  sim::SimResult r;
  const json& first = last_[0];
  const double nodes = static_cast<double>(command_.nodes);
  r.run_name = config_.name;
  r.run_id = first.value("run_id", "");
  r.mode = config_.mode;
  r.guarantee = guarantee_of(config_.mode);
  r.nodes = command_.nodes;
  r.sim_seed = command_.sim_seed;
  r.params = first.value("params", std::uint64_t{0});
  r.samples = first.value("samples", std::uint64_t{0});
  r.virtual_seconds = r.wall_seconds = seconds();
  r.loss = first.value("loss", 0.0);
  if (first.contains("accuracy")) r.accuracy = first["accuracy"].get<double>();
  r.curve = curve_;
  r.tensors = tensors_;
  r.sent_bytes_per_node = sum("traffic", "sent_bytes") / nodes;
  r.received_bytes_per_node = sum("traffic", "received_bytes") / nodes;
  double steps = 0;
  for (const json& peer : last_) steps += peer.value("steps", 0.0) - peer.value("steps_held", 0.0);
  const double payload = sum("compression", "payload_bytes"), entries = sum("compression", "entries");
  r.dense_update_bytes = 4.0 * static_cast<double>(r.params);
  r.update_bytes_mean = steps > 0 ? payload / steps : 0;
  r.ratio = payload > 0 ? r.dense_update_bytes * steps / payload : 0;
  const double fresh = sum("traffic", "updates_received"),
               copies = fresh + sum("traffic", "updates_duplicate");
  r.copies_per_delivery = fresh > 0 ? copies / fresh : 0;
  r.control_fraction =
      r.sent_bytes_per_node > 0 ? sum("traffic", "sent_control_bytes") / nodes / r.sent_bytes_per_node : 0;
  const double canonical = sum("traffic", "sent_canonical_bytes");
  if (canonical > 0) r.link_coding_ratio = sum("traffic", "sent_payload_bytes") / canonical;
  r.density = steps > 0 ? entries / (steps * static_cast<double>(r.params)) : 0;
  r.bits_per_entry = entries > 0 ? 8 * payload / entries : 0;
  r.bound_bits_per_entry = number(first, "compression", "bound_bits_per_entry");
  r.identical = true;
  r.digest = first.value("digest", "");
  for (std::size_t i = 0; i < last_.size(); ++i) {
    r.identical = r.identical && last_[i].value("digest", "") == r.digest;
    const auto updates = last_[i].value("updates", std::uint64_t{0});
    r.updates = config_.has_own_models() ? r.updates + updates : std::max(r.updates, updates);
    r.lost += static_cast<std::uint64_t>(number(last_[i], "traffic", "updates_lost"));
    r.traffic.push_back({str("peer ", i + 1),
                         static_cast<std::uint64_t>(number(last_[i], "traffic", "sent_bytes")),
                         static_cast<std::uint64_t>(number(last_[i], "traffic", "received_bytes"))});
  }
  if (config_.has_own_models()) r.disagreement = disagreement();
  return r;
}

// Disagreement of the models in the peers' last checkpoints. The run began with the weights of its seed.
double DaemonRun::disagreement() const {
  std::vector<std::vector<float>> models;
  std::vector<std::span<const float>> all;
  for (std::size_t i = 0; i < command_.nodes; ++i) {
    const auto loaded = daemon::load_checkpoint(scratch_.file(i, ""), [&](BytesView bytes) -> Result<void> {
      const auto form = read_checkpoint_form(bytes);
      if (!form) return form.error();
      const auto checkpoint = decode_checkpoint(*form, bytes);
      if (!checkpoint) return checkpoint.error();
      models.push_back(model_of(*form, *checkpoint));
      return {};
    });
    if (!loaded) return 0;
  }
  for (const std::vector<float>& model : models) all.emplace_back(model);
  const auto start = first_weights();
  return start ? sim::disagreement(all, *start) : 0;
}

Result<std::vector<float>> DaemonRun::first_weights() const {
  const auto data = models::load_data(config_.data, config_.model.context);
  if (!data) return data.error();
  models::ModelConfig shape = config_.model;
  (*data)->describe(shape);
  const auto model = models::make_model(shape);
  if (!model) return model.error();
  const auto given = models::load_start_weights(config_.weights, config_.model, **data, config_.grid_bits);
  if (!given) return given.error();
  const auto weights = *given ? (*given)->weights
                              : models::initial_weights(**model, config_.seed, config_.grid_bits);
  return models::to_floats(weights, config_.grid_bits);
}

void DaemonRun::print_peers(std::FILE* to) const {
  std::fprintf(to, "\n  peer      own samples   accuracy      sent  received   digest of its %s\n",
               config_.has_own_models() ? "public copy" : "replica");
  for (std::size_t i = 0; i < last_.size(); ++i) {
    const json& p = last_[i];
    const double own = p.value("steps", 0.0) * config_.batch;
    std::fprintf(to, "  %-8zu %12.0f   %6.2f %%  %9s %9s   %s\n", i + 1, own, p.value("accuracy", 0.0) * 100,
                 byte_text(number(p, "traffic", "sent_bytes")).c_str(),
                 byte_text(number(p, "traffic", "received_bytes")).c_str(), p.value("digest", "").c_str());
  }
}

int DaemonRun::run() {
  watch_for_signals();
  std::fprintf(
      stderr,
      "starting %zu peers on loopback; each trains on its own 1/%zu of the data (Ctrl-C ends all of them)\n",
      command_.nodes, command_.nodes);
  if (auto started = start(); !started) return fail(started.error());
  bool healthy = true;
  while (!interrupted() && healthy && !children_.all_ended()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    healthy = poll();
    if (healthy) show();
  }
  line_.clear();
  if (interrupted()) {
    std::fprintf(stderr, "stopping all peers\n");
    children_.end_all();
    return 0;
  }
  for (std::size_t i = 0; i < children_.count(); ++i) {
    const auto status = children_.status(i);
    if (!status || *status == 0) continue;
    scratch_.keep();
    return fail(
        {*status == 4   ? Errc::diverged
         : *status == 2 ? Errc::usage
                        : Errc::io,
         str("peer ", i + 1, " ended with status ", *status, "; its log: ", scratch_.file(i, ".log"))});
  }
  if (auto read = read_final(); !read) return fail(read.error());
  const sim::SimResult r = result();
  print_peers(command_.json == "-" ? stderr : stdout);
  const int status = output_result(r, command_);
  if (!config_.has_own_models() && !r.identical)
    return fail({Errc::diverged, "the peers ended with different replicas"});
  return status;
}

void print_what_next(const SimCommand& command, const RunConfig& config) {
  std::error_code ignored;
  fs::path program = fs::proximate(fs::read_symlink("/proc/self/exe", ignored), ignored);
  if (program.empty()) program = "rumor";
  const std::string rumor = program.string(), run = command.run.name;
  std::printf(
      "What you saw: %zu processes, no server. Each trained on data of its own and told %s which few\n"
      "weights to move, one bit of sign each; %s.\n\n"
      "Try next:\n"
      "  %s sim %s --nodes 16 --report out\n"
      "      sixteen peers in virtual time; open out/index.html\n"
      "  %s peer %s --status 127.0.0.1:7734\n"
      "      one peer; watch http://127.0.0.1:7734/\n"
      "  %s peer --help\n"
      "      how others join it\n",
      command.nodes, config.has_own_models() ? "its neighbours" : "the others",
      config.averages()     ? "all ended with models that are near each other"
      : config.codistills() ? "each ended with a model of its own, which learned from what its neighbours predict"
                            : "all ended with the same model, which the equal digests prove",
      rumor.c_str(), run.c_str(), rumor.c_str(), run.c_str(), rumor.c_str());
}

}  // namespace

int run_daemons_command(const SimCommand& command) {
  const auto config = load_run(command.run);
  if (!config) return fail(config.error());
  if (config->mode != "broadcast" && !config->has_own_models())
    return fail({Errc::usage, str("--daemons runs peers, and peers know no exchange.mode = \"", config->mode, "\"")});
  if (command.stages > 1 || config->pipeline.stages > 1)
    return fail({Errc::usage, "--daemons starts no stages so far; start `rumor peer --stage` for each, or leave "
                              "--daemons out"});
  if (command.network != "lan" || command.faults != "none")
    return fail(
        {Errc::usage,
         "--network and --faults belong to the virtual cluster; real peers have the network they have"});
  const int status = DaemonRun(command, *config).run();
  if (status == 0 && !interrupted() && command.json != "-") print_what_next(command, *config);
  return status;
}

}  // namespace rumor::tools
