// Muon: momentum whose matrices are made orthogonal before they move the weights (Jordan et al. 2024).
//
// A hidden matrix W [rows][cols] with gradient G (models/optimizers/hidden_matrices.h):
//   V <- momentum V + G
//   W <- W - rate (0.2 sqrt(max(rows, cols)) O + weight_decay W),  O = NewtonSchulz(G + momentum V)
// Nesterov's look ahead is part of the method. The factor of the rate is of Liu et al. 2025, "Muon is scalable for LLM
// training": the mean square of a change is that of a step of Adam, so both get along with one rate.
//
// All other parameters (embeddings, output layer, vectors) take a step of AdamW at rate * adam_share, with adam_beta1
// for beta1. scale_adam_share() lets that share follow the number of peers.
//
// Memory: 4 bytes a parameter of a hidden matrix, 8 of all others; from the first step on 8 bytes a parameter of the
// largest matrix, and what NewtonSchulz needs, for each thread.
// Bits: equal on every machine, for any number of threads. Thread: one caller at a time.
#pragma once

#include <memory>
#include <span>

#include "models/optimizers/hidden_matrices.h"
#include "models/optimizers/optimizer.h"

namespace rumor::models {

// Requires: matrices that lie within `params`, in order, no parameter in two of them; those side by side fill their
// tensor.
std::unique_ptr<Optimizer> make_muon(const OptimizerConfig& config, std::uint32_t params,
                                     std::vector<HiddenMatrix> matrices);

}  // namespace rumor::models
