// Ways to train that only the simulator knows, in virtual time on the network that peers have: what these are measured
// against.
//
// One function each; runtime/METHODS.md says what each way is, what it costs and what it guarantees. They are honest
// baselines: exact float arithmetic, every byte and every wait counted, peers of the speeds that `options` gives them.
//
// `optimizer.rate` is taken as it stands. Errors, of all: Errc::usage for a model, optimizer, shard or fault that does
// not fit, Errc::not_finite when training diverges.
//
// Thread: plain functions, one thread.
#pragma once

#include "runtime/sim/methods/method_setting.h"

namespace rumor::sim {

// Dense averaging (`exchange.mode = "sync"`), in rounds (lock_step.h): every step, all peers' gradients are averaged,
// as by a ring all-reduce, and one optimizer steps on the mean. A step costs the slowest peer's computing, then 2 (N-1)
// / N of the dense bytes over the slower of up- and downlink, and 2 (N-1) latencies. Peers that are away are not waited
// for.
//
// With `exchange.local_steps`, `exchange.participation` or `exchange.outer` models are averaged instead
// (local_steps.h): in a round each peer takes so many steps by itself, with an optimizer and moments of its own; then
// an outer step is taken on the mean of what they have changed (outer_step.h: local SGD, FedAvg, DiLoCo, SparseLoCo). A
// dense round costs what a step of the above costs; a sparse one an all-gather, N-1 times a peer's message. A share C
// of the peers that are here is drawn for each round (FedAvg); they average among themselves, no server pays; whoever
// sat out fetches the model, dense, from one that has it when it is next drawn.
Result<SimResult> run_sync(const MethodSetting& in);

// Consensus ADMM (`exchange.mode = "admm"`), in rounds (lock_step.h): each peer takes `exchange.local_steps` steps on
// its own loss and the pull of rho = `exchange.penalty` to the consensus z (consensus.h), then z is made by a ring
// all-reduce. What is evaluated is z. A peer that was away begins at z anew, its dual variable zero.
Result<SimResult> run_admm(const MethodSetting& in);

// Downpour SGD (`exchange.mode = "downpour"`; Dean et al., NIPS 2012): an asynchronous parameter server. The model is
// cut into `exchange.servers` shards, the first peers host one each besides training, and their links pay for it. A
// worker fetches all shards before every n-th step (`exchange.fetch_every`), steps on its copy, and after every m-th
// step (`exchange.push_every`) pushes the sum of its gradients, 4 bytes a parameter each way; it waits for what it
// fetches and for nothing else. A server makes a copy when its uplink is free to send it. A server steps on each push
// as it comes, with the run file's optimizer and rate / N, so that a push of each peer is together a step on their mean
// (server_shard.h). What is evaluated is the servers' model.
//
// A worker that went away loses its copy and what it had not pushed, and begins with a fetch when it is back. A
// server's state is on its disk: what is sent to it while it is away reaches it when it is back.
Result<SimResult> run_downpour(const MethodSetting& in);

}  // namespace rumor::sim
