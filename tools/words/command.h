// The subcommands of `rumor`: the options of each, and its entry function. Only main.cc parses the command line.
//
// Each returns the process's exit status: 0 done or stopped cleanly, 1 failed while running, 2 wrong usage or
// run file, 3 refused by the run, 4 replicas diverged. Results go to stdout, progress and logs to stderr.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/run/run_config.h"
#include "runtime/sim/world/network.h"

namespace rumor::tools {

// RUN.toml or a preset, with --set overrides.
struct RunSource {
  std::string name;
  std::vector<std::string> overrides;
};
// Its tokenizer is opened, if it names one. Errors: Errc::usage; those of models::open_tokenizer_of.
Result<RunConfig> load_run(const RunSource& source);
// The text of the file or preset.
Result<std::string> run_file_text(const RunSource& source);
// A preset, or a file. Errors: Errc::usage.
Result<sim::NetworkModel> load_network(const std::string& name);

// The options that each process of a run has, whether it trains or follows.
struct MemberWords {
  RunSource run;
  std::vector<std::string> seeds;
  std::string status, status_token, events, allow, token;  // empty: as the run file says
  std::optional<std::string> state, json;
  bool until_done = false;
  double checkpoint_every = 10;  // seconds
  bool quiet = false;
};

struct PeerCommand : MemberWords {
  std::string listen, map_port, tensorboard;  // empty: as the run file says
  std::string device = "cpu";
  std::string shard;  // "I/N", counted from 1
  std::string stage;  // as parse_stages() reads it (stage_list.h), or "auto"; empty: the model is not cut
  std::optional<std::string> capture;
  std::optional<std::uint64_t> until_samples;
  std::optional<double> until_seconds;
  unsigned threads = 0;
};
int run_peer_command(const PeerCommand& command);

struct FollowCommand : MemberWords {
  std::string folder;  // for exports; empty: none
  double every = 600;  // seconds between exports
  bool best = false;   // at each new lowest loss instead
  std::string dtype = "f32";
  bool audit = false;
};
int run_follow_command(const FollowCommand& command);

struct KeyCommand {
  enum class Action : std::uint8_t { make, show, allow, token, revoke };
  Action action = Action::show;
  std::string state;        // directory of the key: of the peer, or of the run's owner
  std::string file = "-";   // the allowlist; where a token goes
  std::string key, remark;  // the peer concerned
  bool remove = false, observe = false;
  RunSource run;
  std::uint32_t uses = 1;
  double days = 7;
};
int run_key_command(const KeyCommand& command);

struct SimCommand {
  RunSource run;
  std::size_t nodes = 4;
  std::uint64_t sim_seed = 1;
  std::string network = "lan";
  std::string faults = "none";
  double step_ms = 20;
  std::vector<double> step_factors;
  std::uint32_t stages = 0;  // 0: as the run file says
  bool daemons = false;
  std::optional<std::string> json, report;

  // --protocol-only: no training.
  bool protocol_only = false, nodes_given = false;
  std::size_t payload_bytes = 240'000;  // spreading
  double load = 0.75, rounds = 2, outage_s = 0, undiallable = 0;
  bool shrink = false;  // of a swarm seed
  std::vector<std::string> without;
  std::string actions;
  double chaos_s = 0;
};
int run_protocol_command(const SimCommand& command, const sim::NetworkModel& network);
int run_sim_command(const SimCommand& command);
int run_daemons_command(const SimCommand& command);

struct CompareCommand {
  RunSource run;
  std::vector<std::string> methods;  // empty: broadcast, sync and alone; of a frontier sim::frontier_methods()
  std::vector<double> rates = {0.5, 1, 2};  // times each method's own
  std::size_t nodes = 4;
  std::uint64_t seeds = 1, sim_seed = 1;
  std::uint32_t points = 24;
  std::string network = "lan";
  double step_ms = 20;
  std::vector<double> step_factors;
  std::optional<std::string> keep, json, report;
  std::optional<std::string> frontier;            // a directory, as of report
  std::vector<double> budgets = {0.1, 0.3, 1, 3};  // of a frontier: factors of each method's own bytes
};
int run_compare_command(const CompareCommand& command);

struct StatsCommand {
  std::string source, token;
  std::optional<double> density;
  std::optional<std::uint64_t> budget_bytes;
  std::optional<std::string> json, report;
};
int run_stats_command(const StatsCommand& command);

struct StatusCommand {
  std::string address, token;  // token: a file, or empty
  bool json = false;
};
int run_status_command(const StatusCommand& command);

struct TopCommand {
  std::vector<std::string> addresses;
  std::string token;
  double every = 1;  // seconds
};
int run_top_command(const TopCommand& command);

struct DoctorCommand {
  RunSource run;  // no name: only checks that need no run
  std::string state, peer, token;
  std::vector<std::string> dial;
};
int run_doctor_command(const DoctorCommand& command);

// The token in a file (daemon/status/status_token.h); of no file the empty one.
Result<std::string> load_status_token(const std::string& path);

struct CommandDoc;  // reference.h
struct HelpCommand {
  std::string command;  // the command to explain; empty: the program
  bool markdown = false, man = false;
  std::string completion;  // shell
};
// All but plain help, which is the command line's own.
int run_help_command(const HelpCommand& command, const CommandDoc& program);

struct SampleCommand {
  std::string source;  // a state directory, a directory with model.safetensors, a safetensors file; with `live` a run
  std::vector<std::string> live;  // HOST:PORT of peers whose weights are taken; none: those of a file
  std::vector<std::string> overrides;  // of the run
  std::optional<std::string> state;
  std::string token;
  std::string prompt;
  double temperature = 0.8;
  std::uint32_t top_k = 0;
  std::uint64_t seed = 1, length = 500;
  std::optional<std::uint32_t> heads;
  std::string tokens;  // a tokenizer.json; empty: the one beside the model, if there is one
  std::string base;    // the weights that a state's adapters belong to; empty: where the peer had them
};
int run_sample_command(const SampleCommand& command);

struct ExportCommand {
  std::vector<std::string> states;  // of one peer; of one peer of each stage, where a pipeline cuts the model
  std::string to;
  bool merged = false;  // adapters in their base, instead of adapters alone
  std::string base;     // the weights that adapters belong to; empty: where the peer had them
  double average = 0;  // share of the run's samples, [0, 1]; 0: the weights as they are
  std::string dtype = "f32";                 // f32, bf16 or f16
  std::optional<std::uint64_t> shard_bytes;  // of a folder's files, at most; none: 5 GB
};
int run_export_command(const ExportCommand& command);

struct ServeCommand {
  RunSource run;
  std::string model;            // a safetensors file or folder, or the state directory of a peer of the stage
  std::string stage;            // "K" or "K/S", counted from 1; empty: with `report`
  std::string listen = "127.0.0.1:7750", next;
  std::string sensors = "one";  // or max, mean
  double exit_below = 0.5;      // normalised entropy, 0..1
  double mean = 0, scale = 1;
  bool report = false;
  std::string json;             // of the report; empty: none
};
int run_serve_command(const ServeCommand& command);

struct AuditCommand {
  RunSource run;
  std::string target, peer, steps;  // peer: first digits of its key, or empty; steps: "A..B", or empty
  std::string token;                // shown to the swarm; empty: as the run file says
  std::optional<std::string> json;
};
int run_audit_command(const AuditCommand& command);

struct ReplayCommand {
  RunSource run;
  std::string state, at;  // at: "STREAM:SEQ", or empty: the whole run
};
int run_replay_command(const ReplayCommand& command);

// Prints "rumor: TEXT" on stderr and gives the exit status that belongs to the error.
int fail(const Error& error);

// Whole files. write_file replaces; "-" is stdout. Errors: Errc::not_found, Errc::io.
Result<std::string> read_text_file(const std::string& path);
Result<void> write_file(const std::string& path, const std::string& text);
// DIRECTORY/index.html, making the directory. Errors: as write_file.
Result<void> write_report(const std::string& directory, const std::string& page);

// Arms SIGINT and SIGTERM to set a flag that interrupted() reads; for commands without an event loop.
void watch_for_signals();
bool interrupted();

}  // namespace rumor::tools
