// The formulas of averaging with neighbours.
//
// Peer i has weights x_i and a public copy c_i of them, and holds those of its neighbours. After each step of its own
//
//   x_i += rate * sum_j w_ij (c_j - c_i)
//
// (Koloskova, Stich, Jaggi, ICML 2019, Algorithm 2: CHOCO-SGD.) There all peers step at once, and as w is symmetric the
// mean of all x stays where it is; here each draws when it is ready, and copies are as old as their links are slow.
//
// Thread: plain functions.
#pragma once

#include <cstddef>
#include <span>

namespace rumor::sim {

// w_ij of two linked peers with so many neighbours: 1 / (1 + max). A peer's weights of all its links are then below 1,
// and it needs to know no more of the graph. (Xiao, Boyd, Lall, IPSN 2005: Metropolis weights.)
double metropolis_weight(std::size_t neighbours, std::size_t neighbours_of_other);

// The rate for messages of so many entries / parameters: half the root of the density. What is told of a difference
// falls with the density, and who draws faster than copies follow swings; the papers too have the rate fall with what
// compression keeps. The form is ours, from measurements (runtime/METHODS.md).
double consensus_rate(double density);

// One term of the sum: x += share * (theirs - own).
void draw_together(std::span<float> x, std::span<const float> own, std::span<const float> theirs, double share);

// Whether a peer has to say something: |x - c|^2 > bound; always, with a bound of 0. (Kamp, Adilova, Sicking, Hueger,
// Schlicht, Wirtz, Wrobel, ECML PKDD 2018, "Efficient decentralized deep learning by dynamic model averaging": there
// the reference is what a coordinator last averaged, the same for all, and who drifts sends its whole model to it.)
bool has_drifted(std::span<const float> x, std::span<const float> copy, double bound);

}  // namespace rumor::sim
