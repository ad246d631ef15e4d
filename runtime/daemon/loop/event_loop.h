// EventLoop: the thin real driver of one node. Sockets, timers, threads and files on one side, runtime/node/node.h
// on the other; no decision of the protocol is taken here.
//
// Threads: the caller is the protocol thread; one worker computes, one writes files, the status server has its own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "gossip/asio/identity.h"
#include "gossip/pipeline/pipeline.h"
#include "models/data/dataset.h"
#include "runtime/base/result.h"
#include "runtime/base/time.h"
#include "runtime/daemon/export/folder_exports.h"
#include "runtime/daemon/loop/step_runner.h"
#include "runtime/node/node_options.h"
#include "runtime/run/run_config.h"
#include "runtime/stages/stage_choice.h"
#include "runtime/stages/stage_worker.h"

namespace rumor::daemon {

// A peer that follows its run: it keeps a replica and does not train (role observe). It has one link, which it dials,
// and accepts none.
struct Following {
  std::optional<ExportPlan> exports = {};
  bool audits = false;  // makes segments of other peers again, for which it needs the data (runtime/AUDIT.md)
  audit::AuditedPart audited = {};
  // Called once, as soon as the peer has all that a neighbour has; then the peer ends. It may be empty.
  std::function<void(ExportedWeights)> once = {};
};

// A peer that chooses its stage (auto_stage.h) and may move to another: what it has alike in all of them.
struct StageSearch {
  net::Identity identity;
  std::string home;                // directory of its key; empty: nothing is kept
  std::string why;                 // it serves PeerOptions::stage
  std::vector<std::string> known;  // addresses of members, beside those of the state directory
  std::function<bool()> stopped = {};  // a signal has come since it began, perhaps between two stages
};

// The link of a peer to the others in its process (several_stages.h). Both functions are called on the peer's thread.
struct Companion {
  std::string name;                                       // begins each of its lines on stderr: "stage 2"
  std::function<void(const std::string& address)> listens;  // once: others may dial it there
  std::function<bool()> stopped;                          // some times a second; true: it ends as on a signal
};

struct PeerOptions {
  RunConfig config;  // listen, seeds, advertise, status and its token are taken from its [network]
  models::Shard shard;
  std::optional<std::string> state;    // directory; none: nothing is kept
  std::optional<std::string> capture;  // file that own updates are written to
  std::optional<std::uint64_t> until_samples;
  std::optional<double> until_seconds;
  Duration checkpoint_every{10s};
  unsigned threads = 0;  // for passes over all weights; 0: by the size of the model. At least optimizer.hogwild
  std::vector<int> gpus;  // numbers of those of this machine it computes on (gpu/device/plugin.h); none: on a processor
  std::optional<Following> following;  // absent: the peer trains
  std::optional<std::uint32_t> stage = {};  // that it serves, from 1; absent: the model is not cut
  std::vector<std::uint32_t> stages = {};  // several, each served by a peer of its own (several_stages.h)
  bool stage_auto = false;  // it chooses its stage; `state` then has a directory for each (auto_stage.h)
  std::optional<StageSearch> search = {};  // filled in by run_auto_stage()
  std::optional<gossip::PipelineOptions> pipeline = {};  // filled in by run_peer(), which makes `config` the stage's
  std::optional<Companion> companion = {};  // filled in by run_several_stages(), which then takes the signals
  bool quiet = false;     // no progress lines
  bool muted = false;     // nothing on stderr: the program takes events instead
};

// Options of a peer that follows a run. Nobody dials it, wherever the run file says that peers listen.
PeerOptions following_options(RunConfig config);

// A stage that a peer serves. Both pointers are valid as long as the trainer.
struct StageDuty {
  StageWorker* worker = nullptr;
  gossip::MakeStep* complete = nullptr;  // of the next step
  std::string json;  // names stage and pipeline, for readers of the state directory

  // A step of this gradient follows, and the weights are others after it.
  void begin_step(const gossip::MakeStep& collected) { *complete = collected; }
};

// The training of a peer.
struct Training {
  std::unique_ptr<Trainer> trainer;
  std::shared_ptr<const models::StartWeights> start;  // null: from the run's seed
  bool lacks_weights = false;  // those of `start` are not the run's: another peer or a checkpoint has these
  // Description of the model (models/weights/model_json.h). The state directory keeps it for readers of a checkpoint
  // that have no run file. Empty: only the program knows the model.
  std::string model_json;
  std::string adapter_json;    // the same of adapters (models/weights/adapter_json.h); empty: the model has none
  std::string tokenizer_json;  // the file that data.tokens names, kept like the description; empty: there is none
  std::string buffers_json;  // the same for a program's own buffers (option buffers of runtime/bridge/rumor.h)
  std::string device;  // name of the computing device; empty: a processor
  std::optional<StageDuty> stage = {};  // absent: the run is no stage
};

struct PeerEnd {
  int exit_status = 0;
  std::string status_json;           // the last /status
  std::string trouble;               // the last error that was said; empty: none was
  std::unique_ptr<Trainer> trainer;  // its view shows the last weights
  std::optional<StageChoice> move = {};   // it is to serve this stage now; absent: it ends
  std::vector<std::string> known = {};    // of `move`: StageSearch::known
};

// Both run a peer until it is done, stopped, or fails. Messages go to stderr.
// Errors: the reason why it could not start (port in use, damaged data, another run's state).

// Runs a peer as the only task of this process, with the run's own model and data. The first SIGINT or SIGTERM ends it
// cleanly (checkpoint, goodbye), a second one at once. A service manager is notified.
Result<PeerEnd> run_peer(const PeerOptions& options);
// Runs a peer inside another program, which handles signals. `runner` takes the steps and is disconnected at the end.
Result<PeerEnd> run_embedded_peer(const PeerOptions& options, Training training, StepRunner& runner);

}  // namespace rumor::daemon
