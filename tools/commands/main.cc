// rumor: the command line. Each subcommand has a file of its own; this file only parses the arguments.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "runtime/base/kernel_choice.h"
#include "runtime/daemon/status/version.h"
#include "tools/commands/audit_options.h"
#include "tools/commands/footers.h"
#include "tools/words/command.h"
#include "tools/words/out_of_memory.h"
#include "tools/words/reference.h"

namespace {

using namespace rumor::tools;

constexpr const char* token_help = "file with the token of the status address";
constexpr const char* exit_help =
    "Exit status: 0 done or stopped cleanly, 1 failed while running, 2 wrong usage or run file,\n"
    "3 refused by the run (other model or run, not admitted), 4 replicas diverged.\n"
    "Environment: RUMOR_KERNELS=portable|avx2|avx512 selects slower kernels than the processor's best (same results).";

void add_peer(CLI::App& app, PeerCommand& c) {
  CLI::App* peer = app.add_subcommand("peer", "Train as one peer of a run, together with the peers it can reach");
  peer->footer(peer_footer);
  peer->add_option("RUN", c.run.name, run_help)->required();
  peer->add_option("--seed", c.seeds, "dial these peers first, HOST:PORT,...; all at once, until the peer stops")
      ->delimiter(',');
  peer->add_option("--listen", c.listen, "accept connections at HOST:PORT; port 0 picks a free port");
  peer->add_option("--map-port", c.map_port,
                   "ask the router to forward the port (NAT-PMP, UPnP): auto, or the router's address");
  peer->add_option("--state", c.state, "directory for identity and checkpoints; created if missing");
  peer->add_option("--allow", c.allow, "file of keys that may connect to this peer; see `rumor key --help`");
  peer->add_option("--token", c.token, "file with a join token");
  peer->add_option("--status", c.status, "serve a web page, /status and /metrics at HOST:PORT");
  peer->add_option("--status-token", c.status_token,
                   "file with the token of the status address; required unless that address is on loopback");
  peer->add_option("--events", c.events, "write events to FILE, one JSON object per line; rotated at 8 MiB");
  peer->add_option("--tensorboard", c.tensorboard, "write curves to an event file in DIR, for TensorBoard");
  peer->add_option("--device", c.device,
                   "where to compute (default: cpu); cuda is the first NVIDIA GPU, cuda:0,1 splits every batch\n"
                   "between two GPUs")
      ->type_name("{cpu,cuda}");
  peer->add_option("--threads", c.threads,
                   "threads for training steps and for passes over all weights (default: by the size of the\n"
                   "model; at least one for each worker of optimizer.hogwild)")
      ->check(CLI::Range(1, 64));
  peer->add_option("--shard", c.shard, "train on part I of N of the data, as I/N (default: all of it)");
  peer->add_option("--stage", c.stage,
                   "serve stage K of a model that pipeline.stages cuts, as K or K/S: seeds may be peers of any\n"
                   "stage; only stage 1 reads data. 1,2 or 1,2/4: several in one process, each with a key and ports\n"
                   "of its own, from those of --listen and --status upward; all: every stage. auto: the stage with\n"
                   "fewest peers, and later one that has lost all, which needs the data. --state then has a\n"
                   "directory for each stage, stage-K")
      ->type_name("{K/S,auto,all}");
  peer->add_flag("--until-done", c.until_done,
                 "end when the run has its samples (run.samples) and the neighbours have the same weights;\n"
                 "without this option the peer keeps serving peers that have not finished");
  peer->add_option("--until-samples", c.until_samples,
                   "the same, at this many samples of all peers together");
  peer->add_option("--until-seconds", c.until_seconds, "end after this many seconds");
  peer->add_option("--checkpoint-every", c.checkpoint_every,
                   "seconds between checkpoints in --state (default 10; a large model writes them less often)")
      ->check(CLI::Range(0.1, 86400.0));
  peer->add_option("--capture", c.capture, "write this peer's updates to FILE, for `rumor stats`");
  peer->add_option("--json", c.json, "write the final status to FILE (- for stdout)");
  peer->add_option("--set", c.run.overrides, set_help);
  add_weights(*peer, c.run);
  peer->add_flag("--quiet", c.quiet, "print no progress lines");
}

// Options of a simulation that runs the protocol without training.
void add_protocol(CLI::App& sim, SimCommand& c) {
  const char* group = "Without training (--protocol-only)";
  const char* storm = "With --faults storm";
  sim.add_flag("--protocol-only", c.protocol_only,
               "no RUN: measure how updates spread; with --faults storm: look for faults that break it")
      ->group(group);
  sim.add_option("--payload-bytes", c.payload_bytes, "size of an update (default 240000)")
      ->check(CLI::Range(1, 1'000'000))
      ->group(group);
  sim.add_option("--load", c.load, "share of each link's capacity that updates use (default 0.75)")
      ->check(CLI::Range(0.001, 2.0))
      ->group(group);
  sim.add_option("--rounds", c.rounds, "updates that each peer publishes during the measurement (default 2)")
      ->check(CLI::Range(0.1, 1e4))
      ->group(group);
  sim.add_option("--outage-s", c.outage_s, "seconds for which a third of the links carry nothing (default 0)")
      ->check(CLI::Range(0.0, 3600.0))
      ->group(group);
  sim.add_option("--undiallable", c.undiallable,
                 "share of peers that accept no connections, as behind a home router (default 0)")
      ->check(CLI::Range(0.0, 0.95))
      ->group(group);
  sim.add_flag("--shrink", c.shrink, "shrink a failing seed to the smallest case that still fails")->group(storm);
  sim.add_option("--without", c.without, "leave out one kind of fault; may be repeated")
      ->group(storm);
  sim.add_option("--actions", c.actions, "inject only the faults with these numbers: 3,7,12 or none")->group(storm);
  sim.add_option("--chaos-s", c.chaos_s, "stop injecting faults after this many virtual seconds")
      ->check(CLI::Range(0.0, 1e6))
      ->group(storm);
}

void add_steps(CLI::App& app, double& step_ms, std::vector<double>& factors) {
  app.add_option("--step-ms", step_ms, "virtual time of a training step, milliseconds (default 20)")
      ->check(CLI::Range(0.1, 1e6));
  app.add_option("--step-factors", factors,
                 "unequal machines: factors of --step-ms for peers 0, 1, ...; the list repeats when there\n"
                 "are more peers: 1,1,2,4")
      ->delimiter(',')
      ->check(CLI::Range(0.01, 1e3));
}

void add_sim(CLI::App& app, SimCommand& c) {
  CLI::App* sim =
      app.add_subcommand("sim", "Simulate a cluster on this machine, or run one of real processes");
  sim->footer(sim_footer);
  sim->add_option("RUN", c.run.name, run_help);
  auto* nodes = sim->add_option("--nodes", c.nodes, "number of peers (default 4)")->check(CLI::Range(1, 1000));
  sim->add_option("--sim-seed", c.sim_seed, "seed of every random choice of the simulation (default 1)");
  sim->add_option("--network", c.network, "lan, wan, home, or FILE.toml (default lan)");
  sim->add_option("--faults", c.faults,
                  "none (default); light: links are reset, peers are killed and restart empty; storm: the\n"
                  "seed chooses crashes, partitions, stalls, full, torn and lost disks, clocks that jump,\n"
                  "drift or stop, slow or stopped processors and hostile peers during the first nine tenths\n"
                  "of the training; then all replicas must be equal; FILE.toml: the faults planned there");
  add_steps(*sim, c.step_ms, c.step_factors);
  sim->add_option("--stages", c.stages,
                  "cut the model into so many stages (pipeline.stages); peer i serves stage i modulo the stages, and\n"
                  "--step-ms is for the whole model")
      ->check(CLI::Range(1, 1024));
  sim->add_flag("--daemons", c.daemons, "run real `rumor peer` processes on loopback, in real time");
  sim->add_option("--json", c.json, "write the result to FILE (- for stdout)");
  sim->add_option("--report", c.report, "write DIR/index.html: curves, compression, traffic; one self-contained page");
  sim->add_option("--set", c.run.overrides, set_help);
  add_weights(*sim, c.run);
  add_protocol(*sim, c);
  sim->callback([&c, nodes] {
    c.nodes_given = nodes->count() > 0;
    if (c.run.name.empty() && !c.protocol_only) throw CLI::RequiredError("RUN");
  });
}

void add_compare(CLI::App& app, CompareCommand& c) {
  CLI::App* compare = app.add_subcommand("compare", "Compare training methods on one run file, in virtual time");
  compare->footer(compare_footer);
  compare->add_option("RUN", c.run.name, run_help)->required();
  compare->add_option("--methods", c.methods,
                      "METHOD[:KEY=VALUE]...,... (default broadcast,sync,alone; with --frontier six, named below)")
      ->delimiter(',');
  compare->add_option("--rates", c.rates, "factors of each method's learning rate to try (default 0.5,1,2)")
      ->delimiter(',')
      ->check(CLI::Range(1e-6, 1e6));
  compare->add_option("--nodes", c.nodes, "number of peers (default 4)")->check(CLI::Range(2, 1000));
  compare->add_option("--seeds", c.seeds, "number of seeds at the best learning rate (default 1)")
      ->check(CLI::Range(1, 100));
  compare->add_option("--sim-seed", c.sim_seed, "the first seed (default 1)");
  compare->add_option("--points", c.points,
                      "evaluations between start and end of a run, each on all unseen data (default 24);\n"
                      "fewer save time with a large model and do not change the final figures")
      ->check(CLI::Range(2, 10000));
  compare->add_option("--network", c.network, "lan, wan, home, or FILE.toml (default lan)");
  add_steps(*compare, c.step_ms, c.step_factors);
  compare->add_option("--keep", c.keep, "directory for finished trials; created if missing");
  compare->add_option("--json", c.json, "write all figures and curves to FILE (- for stdout)");
  compare->add_option("--report", c.report, "write DIR/index.html: table, explanation, curves; self-contained");
  CLI::Option* frontier =
      compare->add_option("--frontier", c.frontier,
                          "write DIR/index.html: loss against bytes and against time, for each method at several\n"
                          "settings; self-contained");
  compare->add_option("--budgets", c.budgets,
                      "with --frontier: factors of the bytes that a method sends, its density times each or its\n"
                      "local steps divided by each (default 0.1,0.3,1,3)")
      ->delimiter(',')
      ->check(CLI::Range(1e-4, 1e4))
      ->needs(frontier);
  compare->add_option("--set", c.run.overrides, set_help);
}

void add_follow(CLI::App& app, FollowCommand& c) {
  CLI::App* sub =
      app.add_subcommand("follow", "Keep a copy of a run's weights up to date, and export it, without training");
  sub->footer(follow_footer);
  sub->add_option("RUN", c.run.name, run_help)->required();
  sub->add_option("--seed", c.seeds, "peers of the run, HOST:PORT,...")->delimiter(',');
  auto* folder = sub->add_option("--export", c.folder,
                                 "folder for model.safetensors and config.json, or for the two files of adapters;\n"
                                 "created if missing (default: none, the follower only keeps its copy)");
  auto* every = sub->add_option("--every", c.every, "time between exports: 30s, 10m, 2h (default 10m)")
                    ->transform(CLI::AsNumberWithUnit(std::map<std::string, double>{
                        {"s", 1.0}, {"m", 60.0}, {"min", 60.0}, {"h", 3600.0}, {"d", 86400.0}}).description(""))
                    ->check(CLI::Range(1.0, 3.2e7).description(""))
                    ->type_name("TIME")
                    ->needs(folder);
  sub->add_flag("--best", c.best, "export at each new lowest loss on the test set, and only then")
      ->needs(folder)
      ->excludes(every);
  sub->add_option("--dtype", c.dtype, "f32, bf16 or f16: type of the weights, rounded to nearest even (default f32)")
      ->check(CLI::IsMember({"f32", "bf16", "f16"}))
      ->needs(folder);
  sub->add_flag("--audit", c.audit, "make updates of the peers again, and prove to all what is false; needs data");
  sub->add_option("--state", c.state, "directory for key, checkpoints and log; created if missing");
  sub->add_option("--allow", c.allow, "file of keys that this follower may be linked to; see `rumor key --help`");
  sub->add_option("--token", c.token, "file with a join token");
  sub->add_option("--status", c.status, "serve a web page, /status and /metrics at HOST:PORT");
  sub->add_option("--status-token", c.status_token,
                  "file with the token of the status address; required unless that address is on loopback");
  sub->add_option("--events", c.events, "write events to FILE, one JSON object per line; rotated at 8 MiB");
  sub->add_flag("--until-done", c.until_done,
                "end when the run has its samples (run.samples) and the weights are those of its peers");
  sub->add_option("--checkpoint-every", c.checkpoint_every,
                  "seconds between checkpoints in --state (default 10; a large model writes them less often)")
      ->check(CLI::Range(0.1, 86400.0));
  sub->add_option("--json", c.json, "write the final status to FILE (- for stdout)");
  sub->add_option("--set", c.run.overrides, set_help);
  add_weights(*sub, c.run);
  sub->add_flag("--quiet", c.quiet, "print no progress lines");
}

void add_key(CLI::App& app, KeyCommand& c) {
  using Action = KeyCommand::Action;
  CLI::App* key =
      app.add_subcommand("key", "Manage who may join a run: keys, allowlists, join tokens, revocations");
  key->require_subcommand(1);
  key->footer(key_footer);
  const auto action = [&c](CLI::App* sub, Action what) { sub->callback([&c, what] { c.action = what; }); };

  CLI::App* make = key->add_subcommand("new", "Create a key and print its public half");
  make->add_option("--state", c.state, "state directory; created if missing")->required();
  action(make, Action::make);

  CLI::App* show = key->add_subcommand("show", "Print the public half of a peer's key, or of each stage's");
  show->add_option("--state", c.state, "state directory")->required();
  action(show, Action::show);

  CLI::App* allow = key->add_subcommand("allow", "Add a key to an allowlist, or refuse it from now on");
  allow->add_option("FILE", c.file, "the allowlist; created if missing")->required();
  allow->add_option("KEY", c.key, "64 hex digits, as `rumor key show` prints them")->required();
  allow->add_flag("--remove", c.remove, "refuse the key: its links close, and its new updates are refused");
  allow->add_option("--remark", c.remark, "comment to store after the key");
  action(allow, Action::allow);

  CLI::App* token = key->add_subcommand("token", "Sign a join token as the run's owner");
  token->add_option("RUN", c.run.name, run_help)->required();
  token->add_option("--owner", c.state, "state directory with the owner's key")->required();
  token->add_option("--out", c.file, "new file for the token, mode 0600 (default: stdout)");
  token->add_option("--key", c.key, "the only peer that may use it");
  token->add_option("--uses", c.uses, "number of peers that may join with it, 0: any number (default 1)");
  token->add_option("--days", c.days, "days for which it can be used to join, 0: no limit (default 7)")
      ->check(CLI::Range(0.0, 36'500.0));
  token->add_flag("--observe", c.observe, "peers that join with it follow the run and do not train");
  token->add_option("--set", c.run.overrides, set_help);
  add_weights(*token, c.run);
  action(token, Action::token);

  CLI::App* revoke = key->add_subcommand(
      "revoke",
      "As the run's owner, take back all updates of a peer and exclude it; prints one line for the\n"
      "network.revoke file of any one peer");
  revoke->add_option("RUN", c.run.name, run_help)->required();
  revoke->add_option("KEY", c.key, "key of the peer to exclude")->required();
  revoke->add_option("--owner", c.state, "state directory with the owner's key")->required();
  revoke->add_option("--set", c.run.overrides, set_help);
  add_weights(*revoke, c.run);
  action(revoke, Action::revoke);
}

void add_stats(CLI::App& app, StatsCommand& c) {
  CLI::App* stats = app.add_subcommand("stats", "Show how well updates compress");
  stats->footer(stats_footer);
  stats->add_option("SOURCE", c.source, "HOST:PORT, directory or file")->required();
  auto* density =
      stats->add_option("--density", c.density, "for dense files: entries / parameters (default 0.001)")
          ->check(CLI::Range(1e-6, 0.5));
  stats->add_option("--budget", c.budget_bytes, "for dense files: largest update, bytes")
      ->excludes(density);
  stats->add_option("--status-token", c.token, token_help);
  stats->add_option("--report", c.report, "write DIR/index.html: history and histograms; one self-contained page");
  stats->add_option("--json", c.json, "write the result to FILE (- for stdout)");
}

void add_sample(CLI::App& app, SampleCommand& c) {
  CLI::App* sample = app.add_subcommand("sample", "Generate text with a trained GPT or LSTM");
  sample->footer(sample_footer);
  sample->add_option("SOURCE", c.source, "state directory or safetensors file; with --live a run file or preset")
      ->required();
  auto* live = sample->add_option("--live", c.live, "HOST:PORT,... of peers of the run, whose weights of now are taken")
                   ->delimiter(',');
  sample->add_option("--state", c.state, "with --live: directory with the key that the peers admit")->needs(live);
  sample->add_option("--token", c.token, "with --live: file with a join token")->needs(live);
  sample->add_option("--set", c.overrides, set_help)->needs(live);
  sample->add_option("--prompt", c.prompt, "text to continue");
  sample->add_option("--temperature", c.temperature,
                     "0: always the most likely token; 1: the model's own probabilities (default 0.8)");
  sample->add_option("--top-k", c.top_k, "sample among the K most likely tokens only (default 0: all)");
  sample->add_option("--seed", c.seed, "seed of the random choices (default 1)");
  sample->add_option("--length", c.length, "tokens to write (default 500)");
  sample->add_option("--tokens", c.tokens, "tokenizer.json of the model (default: the one in the same folder)");
  sample->add_option("--weights", c.base,
                     "of a run with model.adapter: file or folder of the frozen base (default: where the peer had it)");
  sample->add_option("--heads", c.heads, "number of attention heads of a GPT, if there is no config.json")
      ->check(CLI::Range(1, 65536));
}

void add_status(CLI::App& app, StatusCommand& c) {
  CLI::App* sub = app.add_subcommand("status", "Print the state of a running peer");
  sub->footer(status_footer);
  sub->add_option("ADDRESS", c.address, "HOST:PORT")->required();
  sub->add_option("--status-token", c.token, token_help);
  sub->add_flag("--json", c.json, "print the JSON that the peer sent");
}

void add_top(CLI::App& app, TopCommand& c) {
  CLI::App* sub = app.add_subcommand("top", "Watch running peers in the terminal");
  sub->footer(top_footer);
  sub->add_option("ADDRESS", c.addresses, "HOST:PORT, the --status addresses of the peers")->required();
  sub->add_option("--status-token", c.token, token_help);
  sub->add_option("--every", c.every, "seconds between refreshes (default 1)")->check(CLI::Range(0.1, 3600.0));
}

void add_doctor(CLI::App& app, DoctorCommand& c) {
  CLI::App* sub = app.add_subcommand(
      "doctor", "Find problems on this machine (clock, disk, CPU, GPU, data, ports) and say how to fix them");
  sub->footer(doctor_footer);
  sub->add_option("RUN", c.run.name, run_help);
  sub->add_option("--state", c.state, "state directory of the peer; need not exist yet");
  sub->add_option("--peer", c.peer, "HOST:PORT, the status address of a running peer");
  sub->add_option("--status-token", c.token, token_help);
  sub->add_option("--dial", c.dial, "check that a peer accepts connections at HOST:PORT,...")->delimiter(',');
  sub->add_option("--set", c.run.overrides, set_help);
}

void add_export(CLI::App& app, ExportCommand& c) {
  CLI::App* sub = app.add_subcommand("export", "Write a peer's weights as safetensors, for PyTorch and Hugging Face");
  sub->footer(export_footer);
  sub->add_option("STATE", c.states,
                  "state directory of a peer, running or not; where the model is cut, of one peer of each stage")
      ->required();
  sub->add_option("--to", c.to, "FILE.safetensors, or a folder")->required();
  sub->add_option("--average", c.average,
                  "the mean of the weights over this last part of the samples trained so far, such as 0.1; made from "
                  "the log of updates in STATE, as far as it goes back")
      ->check(CLI::Range(0.0, 1.0));
  sub->add_option("--dtype", c.dtype, "f32, bf16 or f16: type of the weights, rounded to nearest even (default f32)")
      ->check(CLI::IsMember({"f32", "bf16", "f16"}));
  sub->add_flag("--merged", c.merged, "of a run with model.adapter: the whole model, with the adapters in its weights");
  sub->add_option("--weights", c.base,
                  "with --merged: file or folder of the frozen base (default: where the peer had it)");
  sub->add_option("--shard-size", c.shard_bytes,
                  "cut a folder's weights into files of at most this size, such as 500MB, with an index (default 5GB)")
      ->transform(CLI::AsSizeValue(true))
      ->check(CLI::PositiveNumber);
}

void add_help(CLI::App& app, HelpCommand& c) {
  CLI::App* sub = app.add_subcommand("help", "Print help, man pages, shell completion and the reference");
  sub->footer(help_footer);
  sub->add_option("COMMAND", c.command, "the command to explain (default: all)");
  sub->add_flag("--markdown", c.markdown, "print the reference of all commands and run file keys");
  sub->add_flag("--man", c.man, "print a man page");
  sub->add_option("--completion", c.completion, "print the completion script of a shell")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
}

OptionDoc describe(const CLI::Option& option) {
  OptionDoc doc{.name = option.get_positional() ? option.get_name(true) : "--" + option.get_lnames().front(),
                .argument = {},
                .help = option.get_description(),
                .required = option.get_required(),
                .choices = {}};
  if (option.get_type_size_max() > 0) doc.argument = option.get_type_name();
  const std::size_t open = doc.argument.find('{'), close = doc.argument.find('}');
  if (open == std::string::npos || close == std::string::npos) return doc;
  doc.argument = doc.argument.substr(open + 1, close - open - 1);
  doc.choices = CLI::detail::split(doc.argument, ',');
  return doc;
}

std::vector<CLI::App*> commands_of(CLI::App& app) {
  return app.get_subcommands([](CLI::App*) { return true; });
}

CommandDoc describe(CLI::App& app) {
  CommandDoc doc;
  doc.name = app.get_name();
  doc.summary = app.get_description();
  doc.footer = app.get_footer();
  for (const CLI::Option* option : app.get_options())
    (option->get_positional() ? doc.positionals : doc.options).push_back(describe(*option));
  for (CLI::App* sub : commands_of(app)) doc.commands.push_back(describe(*sub));
  return doc;
}

int tell_help(CLI::App& app, const HelpCommand& c) {
  if (c.markdown || c.man || !c.completion.empty()) return run_help_command(c, describe(app));
  CLI::App* whose = c.command.empty() ? &app : nullptr;
  for (CLI::App* sub : commands_of(app))
    if (sub->get_name() == c.command) whose = sub;
  if (whose == nullptr)
    return fail({rumor::Errc::usage, "there is no command " + c.command + "; `rumor --help` lists the commands"});
  std::fputs(whose->help(whose == &app ? "" : "rumor").c_str(), stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  explain_lack_of_memory();
  CLI::App app{"Rumor: machines of different people train one model together, without a server.", "rumor"};
  app.footer(exit_help);
  app.set_version_flag("--version", std::string("rumor ") + rumor::daemon::version());
  app.require_subcommand(1);
  PeerCommand peer;
  SimCommand sim;
  CompareCommand compare;
  StatsCommand stats;
  FollowCommand follow;
  KeyCommand key;
  SampleCommand sample;
  ExportCommand exported;
  StatusCommand status;
  TopCommand top;
  DoctorCommand doctor;
  AuditCommand audit;
  ReplayCommand replay;
  ServeCommand serve;
  HelpCommand help;
  add_peer(app, peer);
  add_follow(app, follow);
  add_key(app, key);
  add_sim(app, sim);
  add_compare(app, compare);
  add_status(app, status);
  add_top(app, top);
  add_doctor(app, doctor);
  add_stats(app, stats);
  add_sample(app, sample);
  add_export(app, exported);
  add_serve(app, serve);
  add_audit(app, audit);
  add_replay(app, replay);
  add_help(app, help);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;  // prints help or the message
  }
  const char* kernels = std::getenv("RUMOR_KERNELS");
  if (auto chosen = rumor::choose_kernels(kernels == nullptr ? "" : kernels); !chosen)
    return fail(chosen.error());
  if (app.got_subcommand("peer")) return run_peer_command(peer);
  if (app.got_subcommand("follow")) return run_follow_command(follow);
  if (app.got_subcommand("key")) return run_key_command(key);
  if (app.got_subcommand("sample")) return run_sample_command(sample);
  if (app.got_subcommand("serve")) return run_serve_command(serve);
  if (app.got_subcommand("export")) return run_export_command(exported);
  if (app.got_subcommand("audit")) return run_audit_command(audit);
  if (app.got_subcommand("replay")) return run_replay_command(replay);
  if (app.got_subcommand("compare")) return run_compare_command(compare);
  if (app.got_subcommand("help")) return tell_help(app, help);
  if (app.got_subcommand("status")) return run_status_command(status);
  if (app.got_subcommand("top")) return run_top_command(top);
  if (app.got_subcommand("doctor")) return run_doctor_command(doctor);
  if (app.got_subcommand("stats")) return run_stats_command(stats);
  return sim.daemons ? run_daemons_command(sim) : run_sim_command(sim);
}
