#include "tools/commands/audit_options.h"

namespace rumor::tools {

namespace {
constexpr const char* weights_help =
    "start from these weights instead of the seed: a safetensors file, or a folder with model.safetensors\n"
    "or with shards and their model.safetensors.index.json, as Hugging Face writes them (F32, BF16, F16).\n"
    "All peers need the same file: a hash of its content is part of the run's identity";
constexpr const char* adapters_help =
    "of a run with model.adapter: start from the adapters in this folder, with adapter_config.json and\n"
    "adapter_model.safetensors, as rumor export and PEFT write it. All peers need the same content";
}  // namespace

void add_weights(CLI::App& app, RunSource& run) {
  app.add_option_function<std::string>(
      "--weights", [&run](const std::string& path) { run.overrides.push_back("model.weights='" + path + "'"); },
      weights_help);
  app.add_option_function<std::string>(
      "--adapters",
      [&run](const std::string& path) { run.overrides.push_back("model.adapter_start='" + path + "'"); },
      adapters_help);
}

void add_audit(CLI::App& app, AuditCommand& c) {
  CLI::App* sub = app.add_subcommand("audit", "Make a run's updates again and say which are not what they claim");
  sub->footer(
      "Of a run with audit.record = true, with its data and the state directory of any of its peers, running or not:\n"
      "  rumor peer synthetic --set audit.record=true --state peer-1\n"
      "  rumor audit synthetic --set audit.record=true peer-1\n"
      "Each update in the log is computed again and compared, byte by byte. That takes as long as all peers together\n"
      "have trained; --peer and --steps make it shorter.\n"
      "With the address of a running peer, segments of updates are drawn as peers publish them, and made again until\n"
      "the run is over or Ctrl-C. A false one is proven to all peers, which check the proof and put its peer out:\n"
      "  rumor audit synthetic --set audit.record=true 127.0.0.1:7711\n"
      "(`rumor follow --audit` does the same and can export the weights.)\n"
      "  agree        the same bytes\n"
      "  differ       somebody did not compute what the run asks for, or a memory erred\n"
      "  cannot tell  the log does not go back so far, a GPU or another program computed, the data are others, or\n"
      "               an earlier update of the same stream does not agree\n"
      "  fewer peers  steps that counted fewer live peers than had sent updates since the step before, and so\n"
      "               learned at a higher rate; a peer that has just left explains some of them\n"
      "Exit status 1: at least one update differs.");
  sub->add_option("RUN", c.run.name, run_help)->required();
  sub->add_option("STATE", c.target, "state directory of a peer of the run, or HOST:PORT of one that runs")->required();
  sub->add_option("--peer", c.peer, "only updates of this peer: the first digits of its key");
  sub->add_option("--steps", c.steps,
                  "only these updates of each stream, as A..B, counted from 1; of a running swarm the\n"
                  "segments that have any of them");
  sub->add_option("--token", c.token, "the token to show to a running swarm, where its owner gives tokens");
  sub->add_option("--json", c.json, "write the findings to FILE (- for stdout)");
  sub->add_option("--set", c.run.overrides, set_help)->allow_extra_args(false);  // STATE may follow it
  add_weights(*sub, c.run);
}

void add_replay(CLI::App& app, ReplayCommand& c) {
  CLI::App* sub = app.add_subcommand("replay", "Make a run again from its log and data, or look at one of its steps");
  sub->footer(
      "For a run with audit.record = true:\n"
      "  rumor replay synthetic --set audit.record=true peer-1                  the whole run: equal weights\n"
      "  rumor replay synthetic --set audit.record=true peer-1 --at 3f2a:120    update 120 of the stream 3f2a...\n"
      "Of one update it shows loss, learning rate, the rows it learned from, and which tensors it moves: where did\n"
      "the run go bad, and whose step was it? `rumor audit` lists the streams. All updates of the stream before it\n"
      "are computed again, too.");
  sub->add_option("RUN", c.run.name, run_help)->required();
  sub->add_option("STATE", c.state, "state directory of a peer of the run")->required();
  sub->add_option("--at", c.at, "one update, as STREAM:SEQ; of the stream's name the first digits are enough");
  sub->add_option("--set", c.run.overrides, set_help)->allow_extra_args(false);  // STATE may follow it
  add_weights(*sub, c.run);
}

}  // namespace rumor::tools
