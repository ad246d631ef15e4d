// The object that `rumor sim --stages --json` writes (runtime/CONTRACTS.md).
#include <cstdio>

#include <nlohmann/json.hpp>

#include "runtime/sim/stages/staged_result.h"

namespace rumor::sim {

namespace {

using nlohmann::ordered_json;

ordered_json stage_json(const StageResult& stage) {
  const SimResult& r = stage.run;
  return {{"units", {stage.units.begin, stage.units.end}},
          {"run_id", r.run_id},
          {"nodes", r.nodes},
          {"params", r.params},
          {"samples", r.samples},
          {"utilisation", stage.utilisation},
          {"waited", {{"above", stage.waited_above}, {"link", stage.waited_link}, {"below", stage.waited_below}}},
          {"uplink", stage.uplink},
          {"micro_batches", {{"counted", stage.counted}, {"missing", stage.missing}}},
          {"sent_bytes_per_node", r.sent_bytes_per_node},
          {"replicas",
           {{"identical", r.identical}, {"digest", r.digest}, {"updates", r.updates}, {"lost", r.lost}}}};
}

}  // namespace

std::string to_json(const StagedResult& r) {
  char trace[20];
  std::snprintf(trace, sizeof trace, "%016llx", static_cast<unsigned long long>(r.trace_hash));
  ordered_json j;
  j["command"] = "sim";
  j["virtual_seconds"] = r.virtual_seconds;
  j["training_seconds"] = r.training_seconds;
  j["wall_seconds"] = r.wall_seconds;
  j["trace_hash"] = trace;
  j["final"] = {{"loss", r.evaluation.loss}};
  if (r.evaluation.accuracy) j["final"]["accuracy"] = *r.evaluation.accuracy;
  j["rows_per_second"] = r.rows_per_second();
  j["bound_rows_per_second"] = r.bound.rows_per_second;
  j["limit"] = limit_text(r);
  j["curve"] = ordered_json::array();
  for (const CurvePoint& p : r.curve) {
    ordered_json point = {{"samples", p.samples}, {"virtual_seconds", p.virtual_seconds}, {"loss", p.loss}};
    if (p.accuracy) point["accuracy"] = *p.accuracy;
    point["sent_bytes_per_node"] = p.sent_bytes_per_node;
    j["curve"].push_back(std::move(point));
  }
  j["borders"] = ordered_json::array();
  for (std::size_t i = 0; i + 1 < r.bound.stages.size(); ++i)
    j["borders"].push_back({{"up_bytes", r.bound.stages[i].costs.up_bytes},
                            {"down_bytes", r.bound.stages[i + 1].costs.down_bytes},
                            {"in_flight", r.bound.stages[i + 1].in_flight()}});
  j["stages"] = ordered_json::array();
  for (const StageResult& stage : r.stages) j["stages"].push_back(stage_json(stage));
  j["between_stages"] = {{"activation_bytes", r.activation_bytes},
                         {"gradient_bytes", r.gradient_bytes},
                         {"control_bytes", r.control_bytes},
                         {"late", r.figures.late},
                         {"lost", r.figures.lost},
                         {"refused", r.figures.refused},
                         {"dropped", r.figures.dropped}};
  j["faults"] = {{"link_resets", r.link_resets},
                 {"restarts", r.restarts},
                 {"partitions", r.partitions},
                 {"strikes", r.strikes}};
  return j.dump(2) + "\n";
}

}  // namespace rumor::sim
