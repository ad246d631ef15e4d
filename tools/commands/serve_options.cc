#include "tools/commands/audit_options.h"

namespace rumor::tools {

void add_serve(CLI::App& app, ServeCommand& c) {
  CLI::App* sub = app.add_subcommand("serve", "Serve one tier of a model with exits over HTTP, or report on all tiers");
  sub->footer(
      "Train a model in stages with exits, join the stages, and see where the test set leaves it:\n"
      "  rumor peer run.toml --stage 1/3 --listen 127.0.0.1:7001 --state s1      (and stages 2/3, 3/3)\n"
      "  rumor export s1 s2 s3 --to model.safetensors\n"
      "  rumor serve run.toml model.safetensors --report\n"
      "run.toml has pipeline.stages = 3 and pipeline.exits = [0.3, 0.3]. Then a tier on each machine, from the last:\n"
      "  rumor serve run.toml model.safetensors --stage 3/3 --listen 127.0.0.1:7753\n"
      "  rumor serve run.toml model.safetensors --stage 2/3 --listen 127.0.0.1:7752 --next 127.0.0.1:7753\n"
      "  rumor serve run.toml model.safetensors --stage 1/3 --listen 127.0.0.1:7751 --next 127.0.0.1:7752\n"
      "Ask the first one, with the numbers of a picture as JSON or as little-endian f32:\n"
      "  curl -H 'Content-Type: application/json' -d @picture.json http://127.0.0.1:7751/classify\n"
      "  curl -H 'Content-Type:' --data-binary @picture.f32 http://127.0.0.1:7751/classify\n"
      "A tier answers where its exit is sure, and passes its features to --next where not. If the next tier is\n"
      "missing, the tier answers itself and says so. ?label=K counts right answers; GET /status has the counters.\n"
      "Nobody is asked for a password: whoever reaches the address may ask. Ctrl-C ends it and prints the counters.");
  sub->add_option("RUN", c.run.name, run_help)->required();
  sub->add_option("MODEL", c.model,
                  "what `rumor export` joined: a safetensors file or a folder; or the state of a peer of the stage")
      ->required();
  auto* stage = sub->add_option("--stage", c.stage, "the tier to serve, as K or K/S")->type_name("K/S");
  sub->add_option("--listen", c.listen, "serve at HOST:PORT; port 0 picks a free port (default 127.0.0.1:7750)");
  sub->add_option("--next", c.next, "HOST:PORT of the tier above, which is asked where this one is not sure")
      ->needs(stage);
  sub->add_option("--exit-below", c.exit_below,
                  "an exit is sure where the entropy of its probabilities is below this: 0 for one certain class,\n"
                  "1 for all alike (default 0.5)")
      ->check(CLI::Range(0.0, 1.0));
  sub->add_option("--sensors", c.sensors,
                  "several views of one thing in a request become one, value by value: max or mean of their\n"
                  "features (default one: several are refused)")
      ->check(CLI::IsMember({"one", "max", "mean"}));
  sub->add_option("--mean", c.mean, "tier 1: subtract this from each value of a picture (default 0; see --report)");
  sub->add_option("--scale", c.scale, "tier 1: then multiply each value by this (default 1; see --report)");
  auto* report = sub->add_flag("--report", c.report, "send the test set through all tiers, and print where it leaves")
                     ->excludes(stage);
  sub->add_option("--json", c.json, "with --report: write it to FILE as JSON (- for stdout)")->needs(report);
  sub->add_option("--set", c.run.overrides, set_help)->allow_extra_args(false);  // MODEL may follow it
}

}  // namespace rumor::tools
