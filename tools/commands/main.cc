// rumor: the command line. One subcommand a file; this one only reads what was typed.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "runtime/base/kernel_choice.h"
#include "runtime/daemon/status/version.h"
#include "tools/words/command.h"
#include "tools/words/reference.h"

namespace {

using namespace rumor::tools;

constexpr const char* run_help = "a run file (.toml) or a preset: fashion-mlp, fashion-cnn, synthetic, text-gpt";
constexpr const char* set_help = "override a run file key, such as compress.density=0.003; may be repeated";
constexpr const char* token_help = "file of the token that the status address asks for";
constexpr const char* weights_help =
    "start from these weights instead of the seed: a safetensors file, or a folder with model.safetensors;\n"
    "the same on all peers, for its content is part of the run's name";
constexpr const char* exit_help =
    "Exit status: 0 done or stopped cleanly, 1 failed while running, 2 wrong usage or run file,\n"
    "3 refused by the run (other model or run, not admitted), 4 replicas diverged.\n"
    "Environment: RUMOR_KERNELS=portable|avx2|avx512 instead of the best this processor has (same results, "
    "other speed).";

// As the run file's model.weights.
void add_weights(CLI::App& app, RunSource& run) {
  app.add_option_function<std::string>(
      "--weights", [&run](const std::string& path) { run.overrides.push_back("model.weights='" + path + "'"); },
      weights_help);
}

void add_peer(CLI::App& app, PeerCommand& c) {
  CLI::App* peer = app.add_subcommand("peer", "Train as one peer of a run, with whoever else is there");
  peer->footer(
      "A first peer, then others that join it:\n"
      "  rumor peer fashion-mlp --listen 127.0.0.1:7001 --shard 1/2 --state peer-1\n"
      "  rumor peer fashion-mlp --seed 127.0.0.1:7001 --shard 2/2 --state peer-2\n"
      "A peer needs any one seed to answer, and none to begin with: alone it trains, and keeps trying.\n"
      "Each machine chooses for itself how it computes and what it sends, such as a Hogwild! of two workers:\n"
      "  rumor peer fashion-mlp --set optimizer.hogwild=2 --set exchange.period_ms=0\n"
      "Stopped or killed, it goes on from its state directory, or from the other peers.");
  peer->add_option("RUN", c.run.name, run_help)->required();
  peer->add_option("--seed", c.seeds, "peers to try first, HOST:PORT,...; tried in parallel, for ever")
      ->delimiter(',');
  peer->add_option("--listen", c.listen, "where to accept others, HOST:PORT; port 0 takes a free one");
  peer->add_option("--map-port", c.map_port,
                   "ask the router to let others in from outside (NAT-PMP, UPnP): auto, or its address");
  peer->add_option("--state", c.state, "directory for identity and checkpoints; made when missing");
  peer->add_option("--allow", c.allow, "file of keys that may link to this peer; see `rumor key --help`");
  peer->add_option("--token", c.token, "file of a join token");
  peer->add_option("--status", c.status, "serve a page for people, /status and /metrics at HOST:PORT");
  peer->add_option("--status-token", c.status_token,
                   "file of a token that the status address asks for; needed where it is not on loopback");
  peer->add_option("--events", c.events, "write what happens to FILE, a line of JSON each; rotated at 8 MiB");
  peer->add_option("--tensorboard", c.tensorboard, "write curves to an event file in DIR, for TensorBoard");
  peer->add_option("--device", c.device,
                   "where to compute (default: cpu); cuda is the first NVIDIA GPU, cuda:0,1 two of them, each with\n"
                   "a part of every batch")
      ->type_name("{cpu,cuda}");
  peer->add_option("--threads", c.threads,
                   "for a step and the passes over all weights (default: by the size of the model;\n"
                   "at least one for each worker of optimizer.hogwild)")
      ->check(CLI::Range(1, 64));
  peer->add_option("--shard", c.shard, "train on part I of N of the data, as I/N (default: all of it)");
  peer->add_flag("--until-done", c.until_done,
                 "end once the run has its samples (run.samples) and the neighbours have the same weights;\n"
                 "without it this peer then serves those that are not done");
  peer->add_option("--until-samples", c.until_samples,
                   "the same once the run has this many samples, all peers together");
  peer->add_option("--until-seconds", c.until_seconds, "end after this time");
  peer->add_option("--checkpoint-every", c.checkpoint_every,
                   "seconds between two checkpoints in --state (default 10; a large model's come less often)")
      ->check(CLI::Range(0.1, 86400.0));
  peer->add_option("--capture", c.capture, "write own updates to FILE, for `rumor stats`");
  peer->add_option("--json", c.json, "write the final status to FILE (- for stdout)");
  peer->add_option("--set", c.run.overrides, set_help);
  add_weights(*peer, c.run);
  peer->add_flag("--quiet", c.quiet, "no progress lines");
}

// The protocol without training, by simulation only.
void add_protocol(CLI::App& sim, SimCommand& c) {
  const char* group = "Without training (--protocol-only)";
  const char* storm = "With --faults storm";
  sim.add_flag("--protocol-only", c.protocol_only,
               "no RUN: how updates spread; with --faults storm: which faults break it")
      ->group(group);
  sim.add_option("--payload-bytes", c.payload_bytes, "of an update (default 240000)")
      ->check(CLI::Range(1, 1'000'000))
      ->group(group);
  sim.add_option("--load", c.load, "share of every link that updates fill (default 0.75)")
      ->check(CLI::Range(0.001, 2.0))
      ->group(group);
  sim.add_option("--rounds", c.rounds, "updates of each peer while measuring (default 2)")
      ->check(CLI::Range(0.1, 1e4))
      ->group(group);
  sim.add_option("--outage-s", c.outage_s, "a third of the links stand still for so long (default 0)")
      ->check(CLI::Range(0.0, 3600.0))
      ->group(group);
  sim.add_option("--undiallable", c.undiallable, "share of the peers that others cannot dial, as at home (default 0)")
      ->check(CLI::Range(0.0, 0.95))
      ->group(group);
  sim.add_flag("--shrink", c.shrink, "shrink a failing seed to the smallest case that still fails")->group(storm);
  sim.add_option("--without", c.without, "leave out a kind of fault; may be given several times")
      ->group(storm);
  sim.add_option("--actions", c.actions, "only these faults, by number: 3,7,12 or none")->group(storm);
  sim.add_option("--chaos-s", c.chaos_s, "end the faults after so many virtual seconds")
      ->check(CLI::Range(0.0, 1e6))
      ->group(storm);
}

void add_steps(CLI::App& app, double& step_ms, std::vector<double>& factors) {
  app.add_option("--step-ms", step_ms, "virtual cost of a training step (default 20)")->check(CLI::Range(0.1, 1e6));
  app.add_option("--step-factors", factors,
                 "unequal machines: a step of peer 0, 1, ... takes so many times --step-ms, from the first\n"
                 "again when there are more peers: 1,1,2,4")
      ->delimiter(',')
      ->check(CLI::Range(0.01, 1e3));
}

void add_sim(CLI::App& app, SimCommand& c) {
  CLI::App* sim =
      app.add_subcommand("sim", "Simulate a cluster on this machine, or run one of real processes");
  sim->footer(
      "The nodes are the real thing, in virtual time: the same seed gives the same run, to the last bit.\n"
      "  rumor sim fashion-mlp --nodes 16 --report out       and look at out/index.html\n"
      "  rumor sim synthetic --network home --faults light   slow links, resets, killed nodes\n"
      "  rumor sim fashion-mlp --daemons                     four real processes on loopback\n"
      "  rumor sim fashion-mlp --set exchange.mode=sync --set optimizer.kind=adam --set "
      "optimizer.rate=0.003\n"
      "                                                      the dense baseline to compare with\n"
      "  rumor sim synthetic --faults storm --sim-seed 7     inject the faults drawn from one seed\n"
      "  rumor sim --protocol-only --nodes 200 --network wan how updates of 240 kB spread\n"
      "  rumor sim --protocol-only --faults storm --sim-seed 7  the same without training");
  sim->add_option("RUN", c.run.name, run_help);
  auto* nodes = sim->add_option("--nodes", c.nodes, "how many peers (default 4)")->check(CLI::Range(1, 1000));
  sim->add_option("--sim-seed", c.sim_seed, "decides everything left to chance (default 1)");
  sim->add_option("--network", c.network, "lan, wan, home, or FILE.toml (default lan)");
  sim->add_option("--faults", c.faults,
                  "none; light: links reset, nodes are killed and come back empty; storm: the seed\n"
                  "chooses among crashes, partitions, stalls, full, torn and lost disks, clocks that jump,\n"
                  "drift or stop, slow or standing processors, hostile peers: they strike during nine tenths\n"
                  "of the training, then all must be equal; FILE.toml: as planned there (default none)");
  add_steps(*sim, c.step_ms, c.step_factors);
  sim->add_flag("--daemons", c.daemons, "real `rumor peer` processes on loopback, in real time");
  sim->add_option("--json", c.json, "write the result to FILE (- for stdout)");
  sim->add_option("--report", c.report, "write DIR/index.html: curves, compression, traffic; self-contained");
  sim->add_option("--set", c.run.overrides, set_help);
  add_weights(*sim, c.run);
  add_protocol(*sim, c);
  sim->callback([&c, nodes] {
    c.nodes_given = nodes->count() > 0;
    if (c.run.name.empty() && !c.protocol_only) throw CLI::RequiredError("RUN");
  });
}

void add_compare(CLI::App& app, CompareCommand& c) {
  CLI::App* compare = app.add_subcommand("compare", "Compare ways to train on one run file, in virtual time");
  compare->footer(
      "Every method sees as many samples and is tried with the same number of learning rates; the best of these\n"
      "is what the table tells. Methods: broadcast (Rumor's own); sync (dense averaging by a ring all-reduce at every\n"
      "step, or with keys local SGD, FedAvg, DiLoCo, SparseLoCo); downpour (a parameter server at the peers), admm,\n"
      "average (with neighbours only), codistill; alone (one peer that has all the data). Keys of the run file may\n"
      "follow, run.samples too, for a way that is done sooner and may see more:\n"
      "  rumor compare synthetic --nodes 8 --network home --report out\n"
      "  rumor compare fashion-mlp --methods broadcast,sync:optimizer.kind=adam:optimizer.rate=0.002,alone\n"
      "  rumor compare fashion-mlp --methods broadcast,broadcast:exchange.soft_sync=3 --step-factors 1,1,2,4\n"
      "  rumor compare synthetic --methods broadcast,average,sync:exchange.local_steps=10 --nodes 8 --network wan\n"
      "With --keep DIR every finished trial is kept there, and the same command goes on after an interruption; ways\n"
      "in rounds learn the same on every network, so on another one they only have to find out what it costs.");
  compare->add_option("RUN", c.run.name, run_help)->required();
  compare->add_option("--methods", c.methods, "METHOD[:KEY=VALUE]...,... (default broadcast,sync,alone)")
      ->delimiter(',');
  compare->add_option("--rates", c.rates, "factors of each method's own rate to try (default 0.5,1,2)")
      ->delimiter(',')
      ->check(CLI::Range(1e-6, 1e6));
  compare->add_option("--nodes", c.nodes, "how many peers (default 4)")->check(CLI::Range(2, 1000));
  compare->add_option("--seeds", c.seeds, "how many seeds at the best rate (default 1)")
      ->check(CLI::Range(1, 100));
  compare->add_option("--sim-seed", c.sim_seed, "the first of them (default 1)");
  compare->add_option("--points", c.points,
                      "how often a run is evaluated, on all unseen data: besides begin and end (default 24);\n"
                      "fewer make a large model's comparison shorter and leave its last figures as they are")
      ->check(CLI::Range(2, 10000));
  compare->add_option("--network", c.network, "lan, wan, home, or FILE.toml (default lan)");
  add_steps(*compare, c.step_ms, c.step_factors);
  compare->add_option("--keep", c.keep, "directory for finished trials; made when missing");
  compare->add_option("--json", c.json, "write all figures and curves to FILE (- for stdout)");
  compare->add_option("--report", c.report, "write DIR/index.html: the table, its reading, curves; self-contained");
  compare->add_option("--set", c.run.overrides, set_help);
}

void add_key(CLI::App& app, KeyCommand& c) {
  using Action = KeyCommand::Action;
  CLI::App* key =
      app.add_subcommand("key", "Say who may join a run: keys, allowlists, join tokens, revocations");
  key->require_subcommand(1);
  key->footer(
      "A peer's key is its identity. A run is closed to strangers by an allowlist of keys on each peer\n"
      "(network.allow = \"FILE\"), by an owner (run.owner = \"KEY\", the same on all peers) who signs join\n"
      "tokens, or by both:\n"
      "  rumor key new --state peer-1                       on each machine; prints the key\n"
      "  rumor key allow allowed.txt KEY --remark Ann       on each machine; running peers read it again\n"
      "  rumor key token run.toml --owner boss --out t.tok  the owner; hand t.tok to who may join\n"
      "  rumor peer run.toml --token t.tok --seed HOST:PORT --state peer-9\n"
      "A token is a secret: whoever holds it may join. --key ties it to one peer.");
  const auto action = [&c](CLI::App* sub, Action what) { sub->callback([&c, what] { c.action = what; }); };

  CLI::App* make = key->add_subcommand("new", "Make a key and print its public half");
  make->add_option("--state", c.state, "state directory; made when missing")->required();
  action(make, Action::make);

  CLI::App* show = key->add_subcommand("show", "Print the public half of a peer's key");
  show->add_option("--state", c.state, "state directory")->required();
  action(show, Action::show);

  CLI::App* allow = key->add_subcommand("allow", "Put a key on an allowlist, or refuse it from now on");
  allow->add_option("FILE", c.file, "the list; made when missing")->required();
  allow->add_option("KEY", c.key, "64 hex digits, as `rumor key show` prints them")->required();
  allow->add_flag("--remove", c.remove, "refuse it: its links close, its new updates are not taken");
  allow->add_option("--remark", c.remark, "written behind the key");
  action(allow, Action::allow);

  CLI::App* token = key->add_subcommand("token", "Sign a join token as the run's owner");
  token->add_option("RUN", c.run.name, run_help)->required();
  token->add_option("--owner", c.state, "state directory with the owner's key")->required();
  token->add_option("--out", c.file, "new file for it, mode 0600 (default: stdout)");
  token->add_option("--key", c.key, "the only peer that may use it");
  token->add_option("--uses", c.uses, "how many peers may join by it, 0: any number (default 1)");
  token->add_option("--days", c.days, "how long it can be used to join, 0: for ever (default 7)")
      ->check(CLI::Range(0.0, 36'500.0));
  token->add_flag("--observe", c.observe, "who joins by it may follow, not train");
  token->add_option("--set", c.run.overrides, set_help);
  add_weights(*token, c.run);
  action(token, Action::token);

  CLI::App* revoke = key->add_subcommand(
      "revoke",
      "Take back all updates of a peer and put it out, as the run's owner; prints one line for the\n"
      "file that any one peer names as network.revoke");
  revoke->add_option("RUN", c.run.name, run_help)->required();
  revoke->add_option("KEY", c.key, "the peer")->required();
  revoke->add_option("--owner", c.state, "state directory with the owner's key")->required();
  revoke->add_option("--set", c.run.overrides, set_help);
  add_weights(*revoke, c.run);
  action(revoke, Action::revoke);
}

void add_stats(CLI::App& app, StatsCommand& c) {
  CLI::App* stats = app.add_subcommand("stats", "Show how well updates compress");
  stats->footer(
      "SOURCE is a running peer's status address, a state directory, a capture, or a safetensors file of "
      "updates:\n"
      "dense tensors STEP/NAME (F32), or sparse STEP/NAME.index (U32) and STEP/NAME.sign (U8).\n"
      "How well would my model compress? Dump what each training step changes (learning rate x gradient):\n"
      "  tensors[f'{step}/{name}'] = -lr * p.grad              for some 50 steps, in Python\n"
      "  safetensors.torch.save_file(tensors, 'steps.safetensors')\n"
      "  rumor stats steps.safetensors --density 0.001 --report out");
  stats->add_option("SOURCE", c.source, "HOST:PORT, directory or file")->required();
  auto* density =
      stats->add_option("--density", c.density, "for dense files: entries / parameters (default 0.001)")
          ->check(CLI::Range(1e-6, 0.5));
  stats->add_option("--budget", c.budget_bytes, "for dense files: bytes an update may take")
      ->excludes(density);
  stats->add_option("--status-token", c.token, token_help);
  stats->add_option("--report", c.report, "write DIR/index.html: history and histograms; self-contained");
  stats->add_option("--json", c.json, "write the result to FILE (- for stdout)");
}

void add_sample(CLI::App& app, SampleCommand& c) {
  CLI::App* sample = app.add_subcommand("sample", "Write text with a GPT that was trained");
  sample->footer(
      "  rumor peer text-gpt --state peer-1        train for some minutes; stop it with Ctrl-C\n"
      "  rumor sample peer-1 --prompt 'And God said'\n"
      "SOURCE is the state directory of a peer (running or not), a directory with model.safetensors and\n"
      "config.json, or a safetensors file. Models of bytes write text. Others write text where vocab.json "
      "lies\n"
      "beside them, numbers of tokens elsewhere. The same seed writes the same text on every machine.");
  sample->add_option("SOURCE", c.source, "state directory or safetensors file")->required();
  sample->add_option("--prompt", c.prompt, "what the text begins with");
  sample->add_option("--temperature", c.temperature,
                     "0: the likeliest always; 1: as the model says (default 0.8)");
  sample->add_option("--top-k", c.top_k, "draw among the K likeliest only (default 0: all)");
  sample->add_option("--seed", c.seed, "decides what is drawn (default 1)");
  sample->add_option("--length", c.length, "tokens to write (default 500)");
  sample->add_option("--heads", c.heads, "of attention, where no config.json says it")
      ->check(CLI::Range(1, 65536));
}

void add_status(CLI::App& app, StatusCommand& c) {
  CLI::App* sub = app.add_subcommand("status", "Show what a running peer says of itself");
  sub->footer(
      "ADDRESS is what the peer was given with --status; a browser shows a page there:\n"
      "  rumor peer fashion-mlp --status 127.0.0.1:7734\n"
      "  rumor status 127.0.0.1:7734\n"
      "Another machine's, which has no --status-token, over a tunnel:\n"
      "  ssh -L 7734:127.0.0.1:7734 that.machine");
  sub->add_option("ADDRESS", c.address, "HOST:PORT")->required();
  sub->add_option("--status-token", c.token, token_help);
  sub->add_flag("--json", c.json, "the status as it came, for programs");
}

void add_top(CLI::App& app, TopCommand& c) {
  CLI::App* sub = app.add_subcommand("top", "Watch running peers in the terminal");
  sub->footer(
      "One address: its figures and neighbours. Several: a line each. q or Ctrl-C ends it; where stdout is no\n"
      "terminal it prints once.\n"
      "  rumor top 127.0.0.1:7734 127.0.0.1:7735");
  sub->add_option("ADDRESS", c.addresses, "HOST:PORT, what the peers were given with --status")->required();
  sub->add_option("--status-token", c.token, token_help);
  sub->add_option("--every", c.every, "seconds between two looks (default 1)")->check(CLI::Range(0.1, 3600.0));
}

void add_doctor(CLI::App& app, DoctorCommand& c) {
  CLI::App* sub = app.add_subcommand("doctor", "Find out what keeps a peer from running well, and how to fix it");
  sub->footer(
      "Without anything it looks at the machine; with a run file also at data, disk, ports and seeds. A peer that\n"
      "runs is asked by its status address:\n"
      "  rumor doctor run.toml --state peer-1\n"
      "  rumor doctor --peer 127.0.0.1:7734\n"
      "Whether others can reach this machine only they can tell: run this on one of theirs.\n"
      "  rumor doctor --dial my.host.name:7001\n"
      "Exit status 1 when something is broken.");
  sub->add_option("RUN", c.run.name, run_help);
  sub->add_option("--state", c.state, "the state directory it has or will have");
  sub->add_option("--peer", c.peer, "HOST:PORT, the status address of a peer that runs");
  sub->add_option("--status-token", c.token, token_help);
  sub->add_option("--dial", c.dial, "see whether somebody takes connections at HOST:PORT,...")->delimiter(',');
  sub->add_option("--set", c.run.overrides, set_help);
}

void add_export(CLI::App& app, ExportCommand& c) {
  CLI::App* sub = app.add_subcommand("export", "Write a peer's weights as safetensors, for PyTorch and others");
  sub->footer(
      "Tensors have the names and shapes that PyTorch and Hugging Face give them:\n"
      "  rumor export peer-1 --to weights.safetensors\n"
      "  model.load_state_dict(safetensors.torch.load_file('weights.safetensors'))\n"
      "  rumor export peer-1 --to gpt                         a folder: config.json and model.safetensors\n"
      "  transformers.GPT2LMHeadModel.from_pretrained('gpt')\n"
      "Back again: rumor peer RUN --weights FILE.");
  sub->add_option("STATE", c.state, "state directory of a peer, running or not")->required();
  sub->add_option("--to", c.to, "FILE.safetensors, or a folder")->required();
}

void add_help(CLI::App& app, HelpCommand& c) {
  CLI::App* sub = app.add_subcommand("help", "Say what the program knows of itself");
  sub->footer(
      "  rumor help peer                 as rumor peer --help\n"
      "  rumor help --markdown           the reference: commands, options, run file keys, metrics, exit status\n"
      "  rumor help --man peer | man -l -\n"
      "  source <(rumor help --completion bash)");
  sub->add_option("COMMAND", c.command, "whose");
  sub->add_flag("--markdown", c.markdown, "the reference of everything");
  sub->add_flag("--man", c.man, "a man page");
  sub->add_option("--completion", c.completion, "for a shell")->check(CLI::IsMember({"bash", "zsh", "fish"}));
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
    return fail({rumor::Errc::usage, "there is no command " + c.command + "; `rumor --help` names them"});
  std::fputs(whose->help(whose == &app ? "" : "rumor").c_str(), stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Rumor: machines of different people train one model together, with no server.", "rumor"};
  app.footer(exit_help);
  app.set_version_flag("--version", std::string("rumor ") + rumor::daemon::version());
  app.require_subcommand(1);
  PeerCommand peer;
  SimCommand sim;
  CompareCommand compare;
  StatsCommand stats;
  KeyCommand key;
  SampleCommand sample;
  ExportCommand exported;
  StatusCommand status;
  TopCommand top;
  DoctorCommand doctor;
  HelpCommand help;
  add_peer(app, peer);
  add_key(app, key);
  add_sim(app, sim);
  add_compare(app, compare);
  add_status(app, status);
  add_top(app, top);
  add_doctor(app, doctor);
  add_stats(app, stats);
  add_sample(app, sample);
  add_export(app, exported);
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
  if (app.got_subcommand("key")) return run_key_command(key);
  if (app.got_subcommand("sample")) return run_sample_command(sample);
  if (app.got_subcommand("export")) return run_export_command(exported);
  if (app.got_subcommand("compare")) return run_compare_command(compare);
  if (app.got_subcommand("help")) return tell_help(app, help);
  if (app.got_subcommand("status")) return run_status_command(status);
  if (app.got_subcommand("top")) return run_top_command(top);
  if (app.got_subcommand("doctor")) return run_doctor_command(doctor);
  if (app.got_subcommand("stats")) return run_stats_command(stats);
  return sim.daemons ? run_daemons_command(sim) : run_sim_command(sim);
}
