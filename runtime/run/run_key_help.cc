// One line of help for each key of a run file, for the reference. tests/unit/runtime/run/run_config_test.cc checks
// that every key has one.
#include <algorithm>
#include <array>
#include <utility>

#include "runtime/run/run_config.h"

namespace rumor {
namespace {

using Help = std::pair<std::string_view, std::string_view>;

constexpr std::array run_and_data = std::to_array<Help>({
    {"run.name", "name of the run, shown to people"},
    {"run.seed", "seed of the initial weights; part of the run's identity"},
    {"run.owner", "public key of the owner, who signs join tokens and revocations"},
    {"run.samples", "planned length in samples of all peers together; the learning-rate schedule spans it"},
    {"model.family", "mlp, cnn or gpt"},
    {"model.hidden", "widths of the hidden dense layers"},
    {"model.channels", "channels of each stage of a CNN"},
    {"model.blocks", "residual blocks per stage of a CNN; 0: one plain convolution per stage"},
    {"model.pool_every", "number of CNN stages between two poolings"},
    {"model.groups", "groups of a CNN's GroupNorm; 0: no normalization"},
    {"model.weights", "start from this safetensors file, not the seed; all peers need the same content, at any path"},
    {"model.context", "context length of a GPT, tokens"},
    {"model.layers", "number of blocks of a GPT"},
    {"model.heads", "number of attention heads of a GPT"},
    {"model.embedding", "width of a GPT"},
    {"model.precision", "input precision of a GPU's matrix products; sums are fp32, and a CPU always uses fp32"},
    {"data.kind", "format of the data"},
    {"data.seed", "seed of synthetic data"},
    {"data.skew", "pieces of the label-sorted data set that each peer gets, for unlike peers; 0: all peers alike"},
    {"data.path", "path of the data on this machine; empty: where Debian's packages install it"},
});

constexpr std::array optimizer = std::to_array<Help>({
    {"optimizer.kind", "optimizer of a local step"},
    {"optimizer.rate", "peak learning rate of four peers together"},
    {"optimizer.rate_scaling", "how the learning rate grows with the number of peers"},
    {"optimizer.warmup", "share of the run in which the learning rate rises"},
    {"optimizer.floor", "final learning rate, as a share of the peak"},
    {"optimizer.momentum", "momentum, or beta1 of Adam"},
    {"optimizer.beta2", "beta2 of Adam and RMSProp"},
    {"optimizer.weight_decay", "weight decay of AdamW"},
    {"optimizer.clip", "largest norm of a gradient; 0: no limit"},
    {"optimizer.hogwild", "threads that update the same weights without locks; 0: off"},
    {"optimizer.hogwild_batches", "mini-batches per update with optimizer.hogwild"},
    {"optimizer.batch", "samples per step"},
});

constexpr std::array exchange = std::to_array<Help>({
    {"exchange.mode", "training method; only the simulator runs others than broadcast, average and codistill"},
    {"exchange.in_flight_weight", "share of this peer's updates in flight that is added to the weights it trains on"},
    {"exchange.period_ms", "shortest time between two updates of this peer, milliseconds"},
    {"exchange.staleness_scale", "the learning rate is divided by staleness to this power; 0: off"},
    {"exchange.brake_from", "staleness, in updates, above which the learning rate is lowered; 0: off"},
    {"exchange.soft_sync", "updates of other peers that a step waits for; 0: off"},
    {"exchange.steps_ahead", "updates by which a peer may lead the slowest one before its steps wait; 0: off"},
    {"exchange.early_share", "share of the run that is its early phase"},
    {"exchange.early_peers", "number of shards that train in the early phase; 0: all"},
    {"exchange.early_density", "factor of the density in the early phase"},
    {"exchange.local_steps", "mini-batches per update, or steps between two rounds"},
    {"exchange.participation", "share of the peers that take part in a round"},
    {"exchange.outer", "outer optimizer of rounds"},
    {"exchange.outer_rate", "learning rate of the outer optimizer"},
    {"exchange.outer_momentum", "momentum of the outer optimizer"},
    {"exchange.penalty", "penalty of ADMM, rho"},
    {"exchange.servers", "number of shards of the parameter server"},
    {"exchange.push_every", "steps between two pushes to the parameter server"},
    {"exchange.fetch_every", "steps between two fetches from the parameter server"},
    {"exchange.neighbours", "neighbours that a peer looks for to exchange copies; it accepts half as many more"},
    {"exchange.consensus_rate", "how fast a model moves towards its neighbours' copies; 0: derived from the density"},
    {"exchange.drift_bound", "squared distance to its public copy above which a peer publishes; 0: always publish"},
    {"exchange.teachers", "neighbours whose predictions a step learns from; steps rotate through all neighbours"},
    {"exchange.refresh_every", "steps between two updates of this peer's public copy"},
    {"exchange.agreement", "weight of the teachers' predictions; the labels have weight 1"},
});

constexpr std::array local = std::to_array<Help>({
    {"compress.density", "entries of an update divided by the number of parameters"},
    {"compress.bytes_per_update", "instead of a density: payload bytes per update"},
    {"compress.bytes_per_second", "instead of a density: payload bytes per second, all updates of this peer together"},
    {"compress.scope", "global: all parameters ranked together; tensor: each tensor separately"},
    {"compress.follow_rate", "density follows the learning rate"},
    {"compress.emit", "size of an entry: that of the smallest chosen entry (threshold), or the mean of the chosen"},
    {"compress.grid_bits", "weights are multiples of 2 to the minus this"},
    {"network.listen", "address on which this peer accepts connections, HOST:PORT"},
    {"network.seeds", "addresses of peers to dial first"},
    {"network.advertise", "addresses at which others reach this peer, if not network.listen"},
    {"network.map_port", "router to ask to forward the port (NAT-PMP, UPnP): auto or its address; empty: none"},
    {"network.status", "address of the page, /status and /metrics; empty: none"},
    {"network.status_token", "file with the token of the status address"},
    {"network.events", "file for events, one JSON object per line; rotated at 8 MiB, four old files are kept"},
    {"network.tensorboard", "directory for an event file of TensorBoard"},
    {"network.allow", "file of keys that may connect; read again when it changes"},
    {"network.revoke", "file of the owner's revocations; read again when it changes"},
    {"network.token", "file with a join token"},
    {"network.link_coding", "coding of updates on links; auto: the smaller codings on slow links"},
    {"network.up_mbit", "upload cap, 10^6 bits per second; 0: no cap"},
    {"network.down_mbit", "download cap, 10^6 bits per second; 0: no cap"},
    {"network.log_mib", "MiB of updates kept on disk for peers that were away"},
});

}  // namespace

std::string_view run_key_help(std::string_view name) {
  const auto in = [&](const auto& list) -> std::string_view {
    const auto it = std::find_if(list.begin(), list.end(), [&](const Help& help) { return help.first == name; });
    return it == list.end() ? std::string_view() : it->second;
  };
  for (const std::string_view found : {in(run_and_data), in(optimizer), in(exchange), in(local)})
    if (!found.empty()) return found;
  return {};
}

}  // namespace rumor
