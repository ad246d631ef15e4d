// rumor serve: one tier of inference, or the report of all tiers.
#include <charconv>
#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>

#include "runtime/base/text.h"
#include "runtime/stages/stage_place.h"
#include "tools/serve/tier_report.h"
#include "tools/serve/tier_server.h"
#include "tools/sim/sim_output.h"
#include "tools/words/command.h"

namespace rumor::tools {

namespace {

// "2" or "2/3" -> 2, where the run file has three stages.
Result<std::uint32_t> tier_number(const std::string& text, std::uint32_t stages) {
  const char* const end = text.data() + text.size();
  std::uint32_t stage = 0, count = stages;
  auto read = std::from_chars(text.data(), end, stage);
  const bool has_number = read.ec == std::errc() && read.ptr != text.data();
  if (has_number && read.ptr != end && *read.ptr == '/') read = std::from_chars(read.ptr + 1, end, count);
  if (!has_number || read.ec != std::errc() || read.ptr != end || stage < 1 || stage > count)
    return Error{Errc::usage, str("--stage ", text, " wants K or K/S with 1 <= K <= S, such as 1/3")};
  if (count != stages || stages == 1)
    return Error{Errc::usage, str("--stage ", text, ": the run file has pipeline.stages = ", stages,
                                  "; give the run file that the model was trained with")};
  return stage;
}

Result<TierRules> rules_of(const ServeCommand& command, const RunConfig& config, const Tier& tier) {
  if (tier.is_last() && !command.next.empty())
    return Error{Errc::usage, "--next is for tiers below the last one, which always answers; leave it out"};
  if (tier.stage() > 1 && (command.mean != 0 || command.scale != 1))
    return Error{Errc::usage, "--mean and --scale are for the pictures of tier 1; leave them out"};
  TierRules rules;
  rules.numbers = border_numbers(config.pipeline);
  rules.exit_below = command.exit_below;
  rules.next = command.next;
  rules.sensors = command.sensors == "max" ? Sensors::max : command.sensors == "mean" ? Sensors::mean : Sensors::one;
  rules.mean = static_cast<float>(command.mean);
  rules.scale = static_cast<float>(command.scale);
  return rules;
}

int report(const ServeCommand& command, const RunConfig& config) {
  const auto data = models::load_data(config.data, config.model.context);
  if (!data) return fail(data.error());
  std::vector<Tier> tiers;
  for (std::uint32_t stage = 1; stage <= config.pipeline.stages; ++stage) {
    auto tier = Tier::create(config, **data, stage, command.model);
    if (!tier) return fail(tier.error());
    tiers.push_back(std::move(*tier));
  }
  ProgressLine line;
  const auto findings =
      find_exits(tiers, **data, border_numbers(config.pipeline), [&](std::uint32_t samples, std::uint32_t of) {
        line.show(str(samples, " of ", of, " rows"));
        return !interrupted();
      });
  line.clear();
  if (!findings) return fail(findings.error());
  if (command.json != "-") std::fputs(report_text(*findings, **data, command.exit_below).c_str(), stdout);
  if (command.json.empty()) return 0;
  const auto written = write_file(command.json, report_json(*findings, **data, command.exit_below));
  return written ? 0 : fail(written.error());
}

int serve(const ServeCommand& command, const RunConfig& config) {
  const auto stage = tier_number(command.stage, config.pipeline.stages);
  if (!stage) return fail(stage.error());
  const auto data = models::describe_data(config.data);
  if (!data) return fail(data.error());
  auto tier = Tier::create(config, *data, *stage, command.model);
  if (!tier) return fail(tier.error());
  auto rules = rules_of(command, config, *tier);
  if (!rules) return fail(rules.error());
  auto server = TierServer::start(std::move(*tier), *rules, command.listen);
  if (!server) return fail(server.error());
  const std::string above = rules->next.empty() ? "" : ", the next tier is " + rules->next;
  std::fprintf(stderr, "tier %u of %u serves on http://%s%s; Ctrl-C ends it\n", *stage, config.pipeline.stages,
               (*server)->address().c_str(), above.c_str());
  while (!interrupted()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  std::fputs((*server)->status_json().c_str(), stdout);
  return 0;
}

}  // namespace

int run_serve_command(const ServeCommand& command) {
  const auto config = load_run(command.run);
  if (!config) return fail(config.error());
  if (command.report == !command.stage.empty())
    return fail({Errc::usage, "give either --stage K/S, to serve a tier, or --report, for the report of all tiers"});
  watch_for_signals();
  return command.report ? report(command, *config) : serve(command, *config);
}

}  // namespace rumor::tools
