// RunConfig: the content of a run file. Sections [run] [model] [data] [optimizer] [exchange] [compress]
// [pipeline] [audit] [network].
//
// Keys marked (shared) must be equal on all peers and go into the run id; each peer chooses the other keys for itself.
// An unknown key is an error that names the nearest known one. Every key can be overridden as "section.key=value".
//
// Thread: plain values. Parsing does no I/O: the caller passes the text.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compress/select/compressor.h"
#include "gossip/contract/link_coder.h"
#include "models/data/dataset.h"
#include "models/families/model.h"
#include "models/optimizers/optimizer.h"
#include "models/weights/start_weights.h"
#include "runtime/base/limits.h"
#include "runtime/base/result.h"
#include "runtime/run/batch_rules.h"
#include "runtime/run/method_rules.h"
#include "runtime/run/pipeline_rules.h"
#include "runtime/run/resolution.h"

namespace rumor {

// Values of `exchange.mode`. Peers know broadcast, average and codistill; only the simulator knows the others
// (sim/methods/methods.h).
inline constexpr std::string_view exchange_modes[] = {"broadcast", "sync",    "downpour",
                                                       "admm",      "average", "codistill"};

// Whether each peer has a model of its own in this mode, and of its neighbours their public copies
// (runtime/exchange/neighbourhood.h).
constexpr bool keeps_own_models(std::string_view mode) { return mode == "average" || mode == "codistill"; }

// The guarantee that a mode gives for the peers' weights: a sentence for people.
std::string_view guarantee_of(std::string_view mode);

// Entries / parameters of one update, at most.
inline constexpr double density_max = 0.2;
// Where a density is automatic, each parameter is sent about so often in the whole run, all peers together.
inline constexpr double entries_wanted = 25;

// For run.samples: longer than anybody trains, so that it ends when somebody says so.
inline constexpr std::uint64_t samples_unbounded = std::uint64_t{1} << 50;

struct RunConfig {
  // [run]
  std::string name = "unnamed";  // (shared)
  std::uint64_t seed = 1;        // (shared) initial weights, fingerprint
  std::string owner;             // (shared, if given) owner's key, for join tokens and revocations: 64 hex digits
  std::uint64_t samples =
      100'000;  // (shared) planned length, all peers together; the schedule spans it

  // [model] (shared), but for weights and precision. The frozen base of adapters is shared, too: models::open_base_of()
  // comes before the run has a name.
  models::ModelConfig model;
  // Weights to start from instead of the seed, or the frozen ones of model.adapter: a safetensors file, or a folder
  // with model.safetensors or its shards and index (models/weights/start_weights.h). Each peer has its own path; the
  // content goes into the run id.
  std::string weights;
  // How a GPU takes the numbers of matrix products (gpu/device/model_table.h): fp32, tf32 or bf16. A processor: fp32
  // always.
  std::string precision = "fp32";

  // [data]  kind, seed, skew and the tokenizer that tokens names (shared); path
  models::DataConfig data;
  Resolution resolution;  // (shared, if there are phases) data.resolution in the file

  // [optimizer] (shared), but for hogwild and hogwild_batches
  models::OptimizerConfig optimizer;
  models::Schedule schedule;
  double rate = 0.5;                  // peak learning rate of four peers together
  // sqrt: rate * sqrt(min(batches, 16) / 4), where `batches` of `batch` rows are in a mini-batch of all peers: as many
  // as peers, or fewer with a global batch; none: rate
  std::string rate_scaling = "sqrt";
  std::string adam_scaling = "same";  // of Muon's steps of AdamW; same: as rate_scaling
  std::uint32_t batch = 16;           // samples of a mini-batch, at most
  std::uint32_t global_batch = 0;     // samples of a mini-batch of all peers together (batch_rules.h); 0: batch each
  // Worker threads that update the same weights without locks (models/optimizers/hogwild.h); 0: off, a step is one
  // mini-batch. With workers, a step is hogwild_batches mini-batches, each taken by a free worker, and so is an update.
  // Not shared: the meaning of an update does not depend on how it was made.
  std::uint32_t hogwild = 0, hogwild_batches = 8;

  // [exchange]
  std::string mode = "broadcast";  // (shared) one of exchange_modes
  // (shared) runtime/exchange/in_flight_view.h; none: auto (runtime/exchange/view_weight.h)
  std::optional<double> in_flight_weight;
  double period_ms = 0;            // least time between two updates of this peer
  StalenessRules staleness;        // runtime/exchange/staleness.h; each peer's own choice
  TurnRules turns;                 // runtime/exchange/turns.h; each peer's own choice
  std::string narrow_links = narrow_thin;  // method_rules.h; each peer's own choice
  // Bits a parameter that a peer may spend at the end on what waits in its residual (runtime/node/phases.h).
  double flush_bits = 0;
  // The beginning of a run, while this share of its samples is being seen, may differ from the rest: only the shards
  // below early_peers train (0: all), and updates are early_density times as dense. Each peer's own choice.
  // Asynchronous training is often begun with fewer workers; whether it pays is measured in METHODS.md.
  double early_share = 0;
  std::uint32_t early_peers = 0;
  double early_density = 1;
  RoundRules round_rules;          // method_rules.h; of broadcast, local_steps: the mini-batches of an update
  ServerRules server_rules;        // the same
  NeighbourRules neighbour_rules;  // the same

  // [compress]
  // Entries / parameters of one update, or of each mini-batch of one (batches()); 0 means auto. Not used with a budget
  // in bytes.
  double density = 0.001;
  // Budgets in bytes (compress/select/budget.h), at most one above 0: of one payload; or of all payloads of this peer
  // in a second, each counted once. A file has one of density and these two; an override takes the place of the
  // file's.
  double bytes_per_update = 0, bytes_per_second = 0;
  compress::Scope scope = compress::Scope::global;
  // Density goes up and down with the learning rate; its mean over the run stays. Worth having where entries are
  // scarce (fewer than about 20 for each parameter over the run, all peers together), no difference otherwise:
  // figures in compress/README.md. Not with a budget in bytes.
  bool follow_rate = false;
  compress::Emit emit = compress::Emit::threshold;
  // (shared, where it counts) The share of the residual that fades while as many entries are sent as there are
  // parameters; 0: nothing fades (compress/select/compressor.h). In a program's own loop nothing does.
  double residual_decay = 0;
  bool fades() const { return residual_decay > 0 && mode == "broadcast"; }
  int grid_bits = 24;  // (shared)

  // [pipeline]
  PipelineRules pipeline;  // (shared, if there are stages) pipeline_rules.h

  // [audit]
  // (shared, if true) Updates come with a record of how they were made (runtime/AUDIT.md); audit.record in the file.
  bool records = false;
  // (shared, with records) Updates of a segment, which an auditor can make again by itself; 0: there are none.
  // audit.segment in the file; segment_updates() is the one that counts.
  std::uint32_t segment = 16;
  // (shared, unless "any") The arithmetic of the steps that the run takes: "any", or "portable": of built-in models on
  // processors, whose steps anybody can make again. With "any" each stream says which it has (runtime/AUDIT.md).
  std::string arithmetic = "any";
  bool takes_portable_steps_only() const { return records && arithmetic == "portable"; }
  // The share of its compute that this peer spends on segments of others; audit.share in the file. 0: none.
  double audit_share = 0;

  // [network]
  std::string listen = "127.0.0.1:0";
  std::vector<std::string> seeds;
  std::vector<std::string> advertise;
  // The router that is asked to let others in (daemon/ports/port_mapper.h): "auto" or its address; empty: none. Not by
  // default: it opens a door from everywhere to this machine, and a peer that nobody can dial trains all the same.
  std::string map_port;
  std::string status;  // empty: no status server
  std::string status_token;  // file of the token that it asks for; empty: none, and then loopback only
  std::string events;  // file for events, one JSON object per line (daemon/state/event_journal.h)
  std::string tensorboard;  // directory for an event file of TensorBoard (daemon/state/tensorboard.h)
  std::string allow;   // file of keys that may be linked (gossip/trust/admission.h); read again when it changes
  std::string revoke;  // file of the owner's revocations, one a line (`rumor key revoke`); read again when it changes
  std::string token;   // file of a join token, as `rumor key token` writes it
  gossip::CodingRule link_coding = gossip::CodingRule::automatic;
  std::string old_words;  // a word in the file that has a new name, for warning(); empty: none
  double up_mbit = 0,
         down_mbit = 0;  // of this peer over all links, TLS included, in 10^6 bits a second; 0: no cap
  // Bytes of updates kept on disk for peers that were away (runtime/replica/update_log.h); log_mib in the run file.
  std::size_t log_bytes = limits::log_file_bytes_max;

  // Segments need a state that can be sent: not one of a model with a state from row to row, nor of a large one.
  static constexpr std::uint32_t segment_params_max = 20'000'000;
  std::uint32_t segment_updates(std::uint32_t params) const {
    return records && model.family != "lstm" && params <= segment_params_max ? segment : 0;
  }
  // In a pipeline each replica of the first stage draws whole batches, whose micro-batches are of one size.
  BatchRules batch_rules() const { return {batch, pipeline.stages > 1 ? 0 : global_batch}; }
  // Mini-batches of one step of a peer that broadcasts, at least one for each Hogwild worker.
  std::uint32_t batches() const {
    if (hogwild > 0) return std::max(hogwild, hogwild_batches);
    return mode == "broadcast" ? round_rules.steps() : 1;
  }
  // How many of so many mini-batches follow one another.
  std::uint32_t batches_in_turn(std::uint32_t all) const { return (all - 1) / std::max(hogwild, 1u) + 1; }
  // Whether the peer chooses the number of mini-batches of each step, and batches() is where it begins.
  bool follows_delay() const { return mode == "broadcast" && hogwild == 0 && round_rules.local_steps == 0; }
  // Whether a peer that broadcasts makes an update of local steps (training/local_steps.h), not of one mini-batch.
  bool takes_local_steps() const { return hogwild == 0 && (batches() > 1 || follows_delay()); }
  bool has_own_models() const { return keeps_own_models(mode); }
  bool averages() const { return mode == "average"; }
  bool codistills() const { return mode == "codistill"; }
  // Peers with models of their own: the number of steps in each of their updates.
  std::uint32_t steps_of_update() const {
    return codistills() ? neighbour_rules.refresh_every : round_rules.steps();
  }
  bool has_byte_budget() const { return bytes_per_update > 0 || bytes_per_second > 0; }
  // A line for people about a choice that works badly, or nothing.
  std::string warning() const;
  // Density to use with `peers` live: `density`, or 25 / (peers * planned steps of one of them) within [1e-4, 1e-2].
  // With a global batch, `density` is that of a mini-batch of `batch` rows, and smaller ones have their share of it.
  // Accuracy depends on how often all peers together send each parameter over the whole run; beyond 20 to 30 times,
  // more does not help. Planned steps: samples / (batch * peers). So the number of peers cancels out, and a run of
  // twice the length has half the density, within the bounds. The result is multiplied by `batches`, up to
  // density_max, so that the entries per sample stay the same. Returns 0 with a budget in bytes, which decides alone.
  double density_for(std::size_t peers, std::uint32_t batches) const;
  double density_for(std::size_t peers) const { return density_for(peers, batches()); }
  // The same at `progress` in [0, 1]: in the early phase times early_density; with follow_rate times the schedule's
  // factor over its mean, so that the mean over the run stays. At most density_max.
  double density_at(std::size_t peers, double progress, std::uint32_t batches) const;
  bool is_early(double progress) const { return progress < early_share; }
  // A pipeline needs a peer of each stage all the time, so its peers have no turns.
  TurnRules turn_rules() const { return pipeline.stages > 1 ? TurnRules{} : turns; }
  // Rate of one of `peers` live peers at `progress` in [0, 1].
  double rate_for(std::size_t peers, double progress) const;
  // Factor of that rate for what Muon leaves to AdamW, beside optimizer.adam_share.
  double adam_factor_for(std::size_t peers) const;
};

// Parses a run file. `source` names it in errors ("run.toml: line 3: ..."). Errors: Errc::usage.
Result<RunConfig> parse_run_config(std::string_view text, const std::string& source);

// Applies "section.key=value" (value as TOML; a bare word is taken as text). Errors: Errc::usage.
Result<void> override_run_config(RunConfig& config, const std::string& assignment);

// One key of a run file, for the reference.
struct RunKey {
  std::string name;        // "section.key"
  std::string wants;       // "a number from 0 to 1", as an error says it
  std::string by_default;  // default value of the key, as written in a run file; empty: none
  bool shared;             // goes into the run id
};
// All of them, section by section.
std::vector<RunKey> run_keys();
// A short description of a key; empty for an unknown key.
std::string_view run_key_help(std::string_view name);

// Built-in run files, by name (preset_names()). Empty when there is none of that name.
std::string_view preset_text(std::string_view name);
std::vector<std::string> preset_names();

}  // namespace rumor
