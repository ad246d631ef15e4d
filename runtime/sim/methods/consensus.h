// The three steps of consensus ADMM.
//
// All peers seek one x that makes sum_i f_i(x) least, f_i the loss on peer i's data. Each has an x_i of its own, and
// u_i, the scaled dual variable: what its x_i was apart from the consensus z so far. In turn (Boyd, Parikh, Chu,
// Peleato, Eckstein, Foundations and Trends in Machine Learning 3(1), 2011, section 7.1, in the scaled form of section
// 3.1.1):
//
//   x_i = argmin f_i(x) + (rho / 2) ||x - z + u_i||^2
//   z   = mean_i (x_i + u_i)
//   u_i = u_i + x_i - z
//
// The argmin of a network's loss cannot be computed. Some gradient steps towards it, from the x_i of the round before,
// replace it (inexact minimization, section 3.4.4).
//
// Bits: float + - * alone, peers in the order of calls. Thread: plain functions. Vectors: [params] each.
#pragma once

#include <span>
#include <vector>

namespace rumor::sim {

struct ConsensusPeer {
  std::vector<float> x, u;
};

// gradient, of f_i at x, becomes that of f_i(x) + (rho / 2) ||x - z + u||^2.
void add_pull(float rho, const ConsensusPeer& peer, std::span<const float> z, std::span<float> gradient);
// z = 0, then z += share (x + u) for each peer, with a share of 1 / peers.
void add_to_consensus(float share, const ConsensusPeer& peer, std::span<float> z);
// u += x - z.
void update_dual(ConsensusPeer& peer, std::span<const float> z);

}  // namespace rumor::sim
