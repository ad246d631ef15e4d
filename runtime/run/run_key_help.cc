// What the keys of a run file are, for the reference. tests/unit/runtime/run/run_config_test.cc sees to it that none is
// missing.
#include <algorithm>
#include <array>
#include <utility>

#include "runtime/run/run_config.h"

namespace rumor {
namespace {

using Help = std::pair<std::string_view, std::string_view>;

constexpr std::array run_and_data = std::to_array<Help>({
    {"run.name", "what people call the run"},
    {"run.seed", "initial weights and fingerprint"},
    {"run.owner", "public key of who may sign join tokens and revocations"},
    {"run.samples", "planned length, all peers together: what the schedule runs over"},
    {"model.family", "mlp, cnn or gpt"},
    {"model.hidden", "widths of the hidden dense layers"},
    {"model.channels", "channels of each stage of a CNN"},
    {"model.blocks", "residual blocks a stage of a CNN; 0: a plain convolution each"},
    {"model.pool_every", "stages of a CNN between two poolings"},
    {"model.groups", "groups of a CNN's GroupNorm; 0: none"},
    {"model.weights", "start from this safetensors file instead of the seed; its content is shared, not its place"},
    {"model.context", "tokens that a GPT sees"},
    {"model.layers", "blocks of a GPT"},
    {"model.heads", "attention heads of a GPT"},
    {"model.embedding", "width of a GPT"},
    {"model.precision", "of numbers in a GPU's matrix products, whose sums are fp32; a processor takes fp32 always"},
    {"data.kind", "layout of the data"},
    {"data.seed", "of synthetic data"},
    {"data.skew", "unlike peers: each gets so many pieces of the set sorted by label; 0: all alike"},
    {"data.path", "where the data lies on this machine; empty: where Debian's packages put it"},
});

constexpr std::array optimizer = std::to_array<Help>({
    {"optimizer.kind", "the rule of a local step"},
    {"optimizer.rate", "peak learning rate of four peers together"},
    {"optimizer.rate_scaling", "how the rate grows with the number of peers"},
    {"optimizer.warmup", "share of the run in which the rate rises"},
    {"optimizer.floor", "what the rate ends at, of its peak"},
    {"optimizer.momentum", "momentum, or beta1 of Adam"},
    {"optimizer.beta2", "of Adam and RMSProp"},
    {"optimizer.weight_decay", "of AdamW"},
    {"optimizer.clip", "largest norm of a gradient; 0: any"},
    {"optimizer.hogwild", "threads that step the same weights without locks; 0: off"},
    {"optimizer.hogwild_batches", "mini-batches of one such update"},
    {"optimizer.batch", "samples a step"},
});

constexpr std::array exchange = std::to_array<Help>({
    {"exchange.mode", "how peers train together; all but broadcast, average and codistill are of the simulator alone"},
    {"exchange.in_flight_weight", "share of the own updates in flight that training looks ahead by"},
    {"exchange.period_ms", "least time between two updates of this peer, milliseconds"},
    {"exchange.staleness_scale", "the rate is divided by staleness to this power; 0: off"},
    {"exchange.brake_from", "staleness in updates from which the rate is lowered; 0: off"},
    {"exchange.soft_sync", "a step waits for so many updates of others; 0: off"},
    {"exchange.steps_ahead", "updates ahead of the slowest peer from which a step waits; 0: off"},
    {"exchange.early_share", "share of the run that counts as its beginning"},
    {"exchange.early_peers", "how many shards train in it; 0: all"},
    {"exchange.early_density", "how many times as dense updates are in it"},
    {"exchange.local_steps", "mini-batches of an update, or steps between two rounds"},
    {"exchange.participation", "share of the peers in a round"},
    {"exchange.outer", "outer optimizer of rounds"},
    {"exchange.outer_rate", "its rate"},
    {"exchange.outer_momentum", "its momentum"},
    {"exchange.penalty", "of ADMM"},
    {"exchange.servers", "shards of the parameter server"},
    {"exchange.push_every", "steps between two pushes to it"},
    {"exchange.fetch_every", "steps between two fetches from it"},
    {"exchange.neighbours", "how many a peer exchanges copies with; it takes half as many more"},
    {"exchange.consensus_rate", "how far models move towards those of neighbours; 0: by the density"},
    {"exchange.drift_bound", "squared distance to what was last told, above which a peer tells; 0: always"},
    {"exchange.teachers", "how many neighbours' predictions a step learns from, in turn"},
    {"exchange.refresh_every", "steps between two tellings of what a model has become"},
    {"exchange.agreement", "weight of what teachers say, beside the labels'"},
});

constexpr std::array local = std::to_array<Help>({
    {"compress.density", "entries of an update over parameters"},
    {"compress.bytes_per_update", "instead of a density: bytes of one payload"},
    {"compress.bytes_per_second", "instead of a density: bytes of all payloads in a second"},
    {"compress.scope", "whether all parameters are ranked together, or each tensor by itself"},
    {"compress.follow_rate", "density goes up and down with the learning rate"},
    {"compress.emit", "what an entry is worth: the smallest chosen, or the mean"},
    {"compress.grid_bits", "weights are multiples of 2 to the minus this"},
    {"network.listen", "where others dial this peer, HOST:PORT"},
    {"network.seeds", "peers to try first"},
    {"network.advertise", "how others reach this peer, where that is not network.listen"},
    {"network.map_port", "router to ask to let others in (NAT-PMP, UPnP): auto or its address; empty: none"},
    {"network.status", "where the page, /status and /metrics are served; empty: nowhere"},
    {"network.status_token", "file of the token that the status address asks for"},
    {"network.events", "file for what happens, a line of JSON each; rotated at 8 MiB, four old ones are kept"},
    {"network.tensorboard", "directory for an event file of TensorBoard"},
    {"network.allow", "file of keys that may be linked; read again when it changes"},
    {"network.revoke", "file of the owner's revocations; read again when it changes"},
    {"network.token", "file of a join token"},
    {"network.link_coding", "bytes of updates on a link; auto: smaller ones where it is slow"},
    {"network.up_mbit", "most that is sent, 10^6 bits a second; 0: no cap"},
    {"network.down_mbit", "most that is received, 10^6 bits a second; 0: no cap"},
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
