// The frontier: the loss that each training method reaches for the bytes it sends, and in how much virtual time.
//
// A method with something to turn is tried at several settings, each a factor of the bytes that it sends:
//
//   broadcast, average, codistill, sync with exchange.outer = "sparse"    compress.density times the factor, or the
//                                                                         run file's budget in bytes times it
//   sync with local steps, participation or Nesterov; admm                exchange.local_steps divided by it
//   downpour                                                              exchange.fetch_every and push_every likewise
//   sync at every step, alone                                             nothing to turn: one setting
//
// compare() runs every setting as a method of its own, so that each has learning rates tried for it. What costs a
// setting is what a peer sends in all, divided by the parameters of the model and the mini-batches of a peer. A setting
// is on the frontier when no other has at most its loss and at most its bytes, and less of one of them; one that sends
// nothing has no place there, since it is no way to train together. The frontier of time is the same with virtual time.
//
// Thread: plain functions and values.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/sim/experiments/compare.h"

namespace rumor::sim {

// For each point (costs that should be low, both) whether no other is at least as good in both and better in one. A
// cost that is no number counts as worse than any.
std::vector<bool> undominated(const std::vector<std::pair<double, double>>& costs);

// The methods of a frontier that names none: Rumor's broadcast, and those it is measured against.
std::vector<std::string> frontier_methods();

struct FrontierMethod {
  std::string asked;  // as for parse_method
  std::string name;   // for people; as it was asked for where two would have one name
};

struct FrontierSetting {
  std::size_t method = 0;   // which of the plan's
  std::string text, brief;  // "density 0.3 %", "0.3 %"
  Method run;
};

struct FrontierPlan {
  std::vector<FrontierMethod> methods;
  std::vector<FrontierSetting> settings;  // method by method, ascending in bytes

  std::vector<Method> runs() const;
};

// `factors`: of the bytes of each method's own setting. Settings that come out equal are one, and none leaves the
// bounds of its key. Errors: those of parse_method; Errc::usage for a method named twice, and where no method sends.
Result<FrontierPlan> plan_frontier(const std::vector<std::string>& methods, const RunConfig& base, std::size_t nodes,
                                   std::vector<double> factors);

struct FrontierPoint {
  std::size_t method = 0;
  std::string text, brief;
  double bytes = 0;  // sent by a peer for each parameter and mini-batch; 0: it sends nothing
  bool cheapest = false, quickest = false;  // on the frontier of bytes, of time
};

struct Frontier {
  Comparison compared;  // its methods are the settings
  std::vector<FrontierMethod> methods;
  std::vector<FrontierPoint> points;  // of each of compared.methods
};

// Requires: `compared` is of plan.runs().
Frontier frontier_of(const FrontierPlan& plan, Comparison compared);

// The comparison's object with a member `frontier`.
std::string to_json(const Frontier& frontier);
std::string to_table(const Frontier& frontier);
std::string to_html(const Frontier& frontier);

}  // namespace rumor::sim
