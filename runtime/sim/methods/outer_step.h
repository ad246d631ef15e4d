// OuterStep: combines the changes that peers have made to one model in a round, each by itself.
//
// A peer's change is the model it began from less the model it ended with, D_i; the mean D = sum_i s_i D_i, with shares
// s_i of sum 1, is an outer gradient, and the model w steps on it:
//
//   none      w - D, which is the mean of the models: periodic averaging (local SGD: Stich, ICLR 2019) and, with shares
//             by rows held, FedAvg (McMahan, Moore, Ramage, Hampson, Aguera y Arcas, AISTATS 2017, algorithm 1)
//   nesterov  m = momentum m + D,  w - rate (D + momentum m): DiLoCo (Douillard et al., 2023), Nesterov's momentum in
//             the form that optimizer libraries have. Momentum 0.9, rate 0.7
//   sparse    of each peer only the k largest entries: e_i = 0.95 e_i + D_i, S_i = top-k(e_i), e_i = e_i - S_i, and
//             w - rate sum_i s_i S_i: the form of SparseLoCo (Sarfi, Thérien, Lidin, Belilovsky, 2025,
//             arXiv:2508.15706), with top-k over the whole model, not by chunks, and values that are not quantized. No
//             momentum, rate 1
//
// Bits: float + - * alone, peers in the order of calls. Thread: one owner. Memory: m and D; sparse: e_i for each peer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/run/run_config.h"

namespace rumor::sim {

struct OuterRule {
  float rate = 1, momentum = 0;
  std::uint32_t entries = 0;  // k; 0: dense
};

// The rule that `exchange.outer` and its keys set for so many peers. Errors: Errc::usage for keys without meaning.
Result<OuterRule> outer_rule(const RunConfig& config, std::uint32_t params, std::size_t peers);

// Bytes of the message that carries a peer's change: 4 a parameter, or for each of k entries its value in 4 bytes
// and its position in as many bits as the last position takes.
double outer_message_bytes(const OuterRule& rule, std::uint32_t params);

// s_i = n_i / sum n.
std::vector<float> shares_of(std::span<const std::uint32_t> rows);

class OuterStep {
 public:
  OuterStep(const OuterRule& rule, std::uint32_t params, std::size_t peers);

  // Peer i, whose share is s_i, has come from model `began` to `ended`; both [params].
  void add(std::size_t i, float share, std::span<const float> began, std::span<const float> ended);
  // Steps on the changes added since the last step. weights: [params].
  void step(std::span<float> weights);
  // Peer i has lost its state: e_i is zero.
  void forget(std::size_t i);

 private:
  std::span<const std::uint32_t> largest(std::span<const float> values);

  OuterRule rule_;
  std::vector<float> mean_, momentum_;
  std::vector<std::vector<float>> residual_;  // e_i; empty: zero
  std::vector<std::uint32_t> order_;
};

}  // namespace rumor::sim
