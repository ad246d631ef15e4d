#include <cstdio>

#include <nlohmann/json.hpp>

#include "runtime/sim/record/sim_result.h"

namespace rumor::sim {

using nlohmann::ordered_json;

namespace {

std::string hex64(std::uint64_t value) {
  char buffer[20];
  std::snprintf(buffer, sizeof buffer, "%016llx", static_cast<unsigned long long>(value));
  return buffer;
}

ordered_json curve_json(const SimResult& r) {
  ordered_json curve = ordered_json::array();
  for (const CurvePoint& p : r.curve) {
    ordered_json point = {{"samples", p.samples}, {"virtual_seconds", p.virtual_seconds}, {"loss", p.loss}};
    if (p.accuracy) point["accuracy"] = *p.accuracy;
    point["sent_bytes_per_node"] = p.sent_bytes_per_node;
    point["threshold"] = p.threshold;
    point["density"] = p.density;
    curve.push_back(std::move(point));
  }
  return curve;
}

}  // namespace

std::string to_json(const SimResult& r) {
  ordered_json j;
  j["command"] = "sim";
  j["run"] = r.run_name;
  j["run_id"] = r.run_id;
  j["mode"] = r.mode;
  j["nodes"] = r.nodes;
  j["sim_seed"] = r.sim_seed;
  j["params"] = r.params;
  j["samples"] = r.samples;
  j["virtual_seconds"] = r.virtual_seconds;
  j["idle_fraction"] = r.idle_fraction;
  j["wall_seconds"] = r.wall_seconds;
  j["trace_hash"] = hex64(r.trace_hash);
  j["stopped_early"] = r.stopped_early;
  j["final"] = {{"loss", r.loss}};
  if (r.accuracy) j["final"]["accuracy"] = *r.accuracy;
  if (r.together_loss) j["together"] = {{"loss", *r.together_loss}};
  if (r.together_accuracy) j["together"]["accuracy"] = *r.together_accuracy;
  j["curve"] = curve_json(r);
  j["traffic"] = {{"sent_bytes_per_node", r.sent_bytes_per_node},
                  {"received_bytes_per_node", r.received_bytes_per_node},
                  {"update_bytes_mean", r.update_bytes_mean},
                  {"dense_update_bytes", r.dense_update_bytes},
                  {"ratio", r.ratio},
                  {"copies_per_delivery", r.copies_per_delivery},
                  {"control_fraction", r.control_fraction},
                  {"link_coding_ratio", r.link_coding_ratio},
                  {"silent_fraction", r.silent_fraction}};
  j["compression"] = {{"density", r.density},
                      {"bits_per_entry", r.bits_per_entry},
                      {"bound_bits_per_entry", r.bound_bits_per_entry}};
  j["replicas"] = {{"identical", r.identical},
                   {"disagreement", r.disagreement},
                   {"guarantee", r.guarantee},
                   {"digest", r.digest},
                   {"updates", r.updates},
                   {"lost", r.lost},
                   {"undelivered", r.undelivered},
                   {"doubled", r.doubled}};
  j["delivery_seconds"] = {
      {"p50", r.delivery_p50}, {"p99", r.delivery_p99}, {"last_p99", r.delivery_last_p99}};
  j["hops"] = {{"mean", r.hops_mean}, {"max", r.hops_max}};
  j["faults"] = {{"link_resets", r.link_resets},
                 {"restarts", r.restarts},
                 {"partitions", r.partitions},
                 {"strikes", r.strikes}};
  return j.dump(2) + "\n";
}

}  // namespace rumor::sim
