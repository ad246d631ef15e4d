// Comparing ways to train on one run file: equal samples (unless a method says other), equal effort of tuning, one
// virtual network.
//
// Every method is tried with the same number of learning rates, its own times each factor, on the first seed; the
// rate that ends with the least test loss then runs on the other seeds too. What is told of a method is the mean over
// seeds at that rate. Curves are compared where they can be: at the bytes that the thriftiest method sends in all, and
// at the virtual time when the first is done; in between two points of a curve, on a straight line.
//
// Thread: plain functions and values.
#pragma once

#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/run/run_config.h"
#include "runtime/sim/record/sim_result.h"

namespace rumor::sim {

// One way to train: a run file of its own, on so many nodes.
struct Method {
  std::string label;  // as it was asked for
  RunConfig config;
  std::size_t nodes = 1;
};

// "broadcast, sync, ..., alone", for people.
std::string method_names();
// The parts of a method's text, between colons.
std::vector<std::string> parts_of_method(const std::string& text);
// METHOD[:KEY=VALUE]...: a mode of exchange, alone (one peer with all of the data), or pipeline (the model in stages,
// on the same number of peers; the others ignore pipeline.* of the run file), then keys of the run file. All
// methods must use the same data; run.samples sets how much of it a method sees. Errors: Errc::usage.
Result<Method> parse_method(const std::string& text, const RunConfig& base, std::size_t nodes);

// The figures kept from one simulation.
struct Trial {
  double rate = 0;
  std::uint64_t seed = 0, samples = 0, params = 0;
  double loss = 0, virtual_seconds = 0, sent_bytes = 0, idle = 0;  // bytes: of one node
  std::optional<double> accuracy;
  bool identical = false;
  double disagreement = 0;  // SimResult's
  std::vector<CurvePoint> curve;
};
Trial trial_of(const SimResult& result, double rate);
std::string to_json(const Trial& trial);
// Errors: Errc::corrupt.
Result<Trial> trial_from_json(const std::string& text);

// Runs one: `method` at `rate` on `seed`. A rate that diverges is no error: its trial has a loss that is not finite.
using RunTrial = std::function<Result<Trial>(const Method& method, double rate, std::uint64_t seed)>;

struct MethodFigures {
  std::string label;
  std::vector<Trial> search;  // one for each rate, on the first seed
  std::vector<Trial> runs;    // one for each seed, at the best of these
  double loss = 0, loss_spread = 0, virtual_seconds = 0, sent_bytes = 0, idle = 0;
  std::optional<double> accuracy, accuracy_spread;  // spread: the greatest distance between two seeds
  // At equal bytes and equal time; absent where a method sends nothing, and where it has not begun.
  std::optional<double> loss_at_bytes, accuracy_at_bytes, loss_at_time, accuracy_at_time;
  double ring_bytes = 0;  // what a ring all-reduce at every step of its batch would have sent, a peer
  double ring_ratio = 0;  // that / bytes sent; 0: sends nothing
  std::optional<double> seconds_to_common_loss;
  bool identical = false;
  double disagreement = 0;  // SimResult's, mean

  // At every rate that was tried; then there is one run, and nothing to tell of it.
  bool diverged() const { return !std::isfinite(runs.front().loss); }
};

// When `m` first was at the accuracy that `other` ends with (where there is none: at its loss), both in the mean over
// seeds; nothing when it never was. Requires: neither has diverged.
std::optional<double> seconds_to_the_end_of(const MethodFigures& other, const MethodFigures& m);

struct Comparison {
  std::string run_name, network;
  std::size_t nodes = 0;
  std::uint64_t samples = 0, most_samples = 0;  // that a method sees: the fewest, the most
  std::uint64_t params = 0, seeds = 0;
  double equal_bytes = 0, equal_seconds = 0, common_loss = 0;  // 0 bytes: nobody sends any
  std::vector<MethodFigures> methods;

  // "fastest", where that is before others end there, "most accurate", "best for this link": a sentence each.
  std::vector<std::string> reading() const;
};

// Tries everything in turn. `factors`: of each method's own rate. Errors: those of a run; Errc::usage when all
// diverge at every rate. Requires: neither list is empty, seeds >= 1.
Result<Comparison> compare(const std::vector<Method>& methods, const std::vector<double>& factors,
                           std::uint64_t first_seed, std::uint64_t seeds, const RunTrial& run);

std::string to_json(const Comparison& comparison);
std::string to_table(const Comparison& comparison);
std::string to_html(const Comparison& comparison);

}  // namespace rumor::sim
