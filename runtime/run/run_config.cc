#include "runtime/run/run_config.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/text.h"

namespace rumor {

std::string_view guarantee_of(std::string_view mode) {
  if (mode == "average")
    return "near each other, never equal: each peer pulls its own model towards its neighbours'; the public copies "
           "that peers hold of each other are equal, bit for bit";
  if (mode == "codistill")
    return "none of weights, never equal: each peer pulls its predictions towards what its teachers predict; the "
           "public copies that peers hold of each other are equal, bit for bit";
  return "equal updates, equal bits";
}

std::string RunConfig::warning() const {
  if (!old_words.empty()) return old_words;
  if (early_share == 0 && (early_peers > 0 || early_density != 1))
    return "exchange.early_peers and early_density do nothing without exchange.early_share, the share of run.samples "
           "that is early, such as 0.1";
  if (audit_share > 0 && (!records || segment == 0))
    return "audit.share does nothing without audit.record = true and segments (audit.segment), on all peers";
  if (residual_decay > 0 && !fades())
    return str("compress.residual_decay is of peers that broadcast; with exchange.mode = \"", mode,
               "\" it does nothing");
  if (pipeline.stages > 1 && global_batch > 0)
    return str("optimizer.global_batch does nothing with pipeline.stages: each step of a stage has optimizer.batch = ",
               batch, " samples, however many peers there are");
  if (pipeline.stages > 1 && turns.trainers > 0)
    return "exchange.trainers does nothing with pipeline.stages: all peers of a stage train at once";
  if (flush_bits > 0 && (mode != "broadcast" || pipeline.stages > 1 || has_byte_budget()))
    return str("exchange.flush_bits does nothing with ",
               pipeline.stages > 1 ? "pipeline.stages"
               : has_byte_budget() ? "a budget in bytes"
                                   : str("exchange.mode = \"", mode, "\""));
  const bool waits = staleness.soft_sync > 0 || staleness.steps_ahead > 0 || staleness.staleness_bound > 0;
  if (has_own_models() && (waits || staleness.scale > 0 || early_peers > 0 || turns.trainers > 0))
    return str("exchange.soft_sync, steps_ahead, staleness_bound, staleness_scale, early_peers and trainers are of "
               "peers that broadcast; with exchange.mode = \"", mode, "\" they do nothing");
  const bool has_momentum = optimizer.kind == "momentum" || optimizer.kind == "adam" || optimizer.kind == "adamw" ||
                            optimizer.kind == "nadamw";
  if (mode != "broadcast" || !has_momentum || optimizer.momentum == 0) return {};
  return str("optimizer.momentum = ", optimizer.momentum, " hurts sparse broadcast: the residual's delay already acts "
             "as momentum, and more of it costs accuracy; set optimizer.momentum = 0, or "
             "optimizer.kind to ", optimizer.kind == "momentum" ? "sgd" : "rmsprop");
}

double RunConfig::density_for(std::size_t peers, std::uint32_t batches) const {
  if (has_byte_budget()) return 0;
  const BatchRules rules = batch_rules();
  const double rows = rules.rows(peers);
  const double rounds = static_cast<double>(samples) / (rows * static_cast<double>(peers));
  const double updates = static_cast<double>(peers) * std::max(rounds, 1.0);
  const double automatic = std::clamp(entries_wanted / updates, 1e-4, 1e-2);
  const double of_a_batch = density > 0 ? density * rows / rules.batch : automatic;
  return std::min(of_a_batch * batches, density_max);
}

double RunConfig::density_at(std::size_t peers, double progress, std::uint32_t batches) const {
  const double mean = std::min(density_for(peers, batches) * (is_early(progress) ? early_density : 1.0), density_max);
  if (!follow_rate) return mean;
  constexpr int points = 256;
  double factors = 0;
  for (int point = 0; point < points; ++point) factors += schedule.factor((point + 0.5) / points);
  if (factors == 0) return mean;
  return std::clamp(mean * schedule.factor(progress) * points / factors, 1e-9, density_max);
}

namespace {

// The learning rate of `peers` together, as a factor of that of four.
double growth(const std::string& scaling, const BatchRules& rules, std::size_t peers) {
  if (scaling != "sqrt") return 1;
  const double count = static_cast<double>(std::max<std::size_t>(peers, 1));
  const double batches = count * rules.rows(peers) / rules.batch;  // in a mini-batch of all peers
  return std::sqrt(std::min(batches, 16.0) / 4.0);
}

}  // namespace

double RunConfig::rate_for(std::size_t peers, double progress) const {
  const double total = rate * growth(rate_scaling, batch_rules(), peers);
  return total * schedule.factor(progress) / static_cast<double>(std::max<std::size_t>(peers, 1));
}

double RunConfig::adam_factor_for(std::size_t peers) const {
  if (adam_scaling == "same") return 1;
  const BatchRules rules = batch_rules();
  return growth(adam_scaling, rules, peers) / growth(rate_scaling, rules, peers);
}

}  // namespace rumor
