#include "runtime/sim/methods/outer_step.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "runtime/base/text.h"

namespace rumor::sim {

namespace {

constexpr float residual_decay = 0.95f;

Error refused(const std::string& text) { return {Errc::usage, text}; }

}  // namespace

Result<OuterRule> outer_rule(const RunConfig& config, std::uint32_t params, std::size_t peers) {
  const RoundRules& rules = config.round_rules;
  if (rules.outer == "none" && (rules.outer_rate || rules.outer_momentum))
    return refused("exchange.outer_rate and exchange.outer_momentum are of an outer optimizer; set exchange.outer = "
                   "\"nesterov\" or \"sparse\", or leave them out");
  if (rules.outer == "none") return OuterRule{};
  if (rules.outer == "nesterov")
    return OuterRule{static_cast<float>(rules.outer_rate.value_or(0.7)),
                     static_cast<float>(rules.outer_momentum.value_or(0.9))};
  if (rules.outer_momentum)
    return refused("exchange.outer = \"sparse\" has no momentum, its residuals stand in for it; leave "
                   "exchange.outer_momentum out");
  if (config.has_byte_budget())
    return refused("exchange.outer = \"sparse\" sends a share of the entries; set compress.density, not a budget in "
                   "bytes");
  const double entries = config.density_for(peers) * params;
  return OuterRule{static_cast<float>(rules.outer_rate.value_or(1)), 0,
                   std::max(1u, static_cast<std::uint32_t>(entries + 0.5))};
}

double outer_message_bytes(const OuterRule& rule, std::uint32_t params) {
  if (rule.entries == 0) return 4.0 * params;
  const auto bits = std::uint64_t{rule.entries} * (32 + static_cast<std::uint64_t>(std::bit_width(params - 1)));
  return static_cast<double>((bits + 7) / 8);
}

std::vector<float> shares_of(std::span<const std::uint32_t> rows) {
  const auto all = static_cast<float>(std::accumulate(rows.begin(), rows.end(), std::uint64_t{0}));
  std::vector<float> shares;
  for (const std::uint32_t n : rows) shares.push_back(static_cast<float>(n) / all);
  return shares;
}

OuterStep::OuterStep(const OuterRule& rule, std::uint32_t params, std::size_t peers)
    : rule_(rule), mean_(params), momentum_(params), residual_(peers), order_(rule.entries > 0 ? params : 0) {}

void OuterStep::add(std::size_t i, float share, std::span<const float> began, std::span<const float> ended) {
  if (rule_.entries == 0) {
    for (std::size_t p = 0; p < mean_.size(); ++p) mean_[p] += share * (began[p] - ended[p]);
    return;
  }
  std::vector<float>& e = residual_[i];
  e.resize(mean_.size());
  for (std::size_t p = 0; p < e.size(); ++p) e[p] = residual_decay * e[p] + (began[p] - ended[p]);
  for (const std::uint32_t p : largest(e)) {
    mean_[p] += share * e[p];
    e[p] = 0;
  }
}

// Positions of the k greatest magnitudes; of equal ones the first.
std::span<const std::uint32_t> OuterStep::largest(std::span<const float> values) {
  std::iota(order_.begin(), order_.end(), 0u);
  const std::uint32_t k = std::min(rule_.entries, static_cast<std::uint32_t>(order_.size()));
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    const float x = std::fabs(values[a]), y = std::fabs(values[b]);
    return x != y ? x > y : a < b;
  };
  std::nth_element(order_.begin(), order_.begin() + (k - 1), order_.end(), before);
  return std::span(order_).first(k);
}

void OuterStep::step(std::span<float> weights) {
  for (std::size_t p = 0; p < weights.size(); ++p) {
    momentum_[p] = rule_.momentum * momentum_[p] + mean_[p];
    weights[p] -= rule_.rate * (mean_[p] + rule_.momentum * momentum_[p]);
    mean_[p] = 0;
  }
}

void OuterStep::forget(std::size_t i) { residual_[i].clear(); }

}  // namespace rumor::sim
