// The table of run file keys: one row has all that a key is, so a new key is one row here and its member in RunConfig.
//
// The run id hashes the shared rows in this order: a new shared row changes the id of every run.
#include "runtime/run/run_key_table.h"

#include <algorithm>
#include <array>

#include "models/families/adapters.h"
#include "runtime/base/check.h"
#include "runtime/base/text.h"
#include "runtime/run/run_key_kinds.h"

namespace rumor {

namespace {

using namespace run_key_kinds;

// Peers with unlike tokenizers do not fit together; the path is each peer's own.
std::string tokenizer_hash(const RunConfig& config) {
  if (config.data.tokens.empty()) return {};
  RUMOR_CHECK(config.data.tokenizer != nullptr);  // models::open_tokenizer_of() comes before
  return config.data.tokenizer->hash().hex();
}

std::vector<RunKeyRow> model_keys() {
  return {
      row("model.family", of_run, "mlp, cnn, gpt, llama or lstm", text(FIELD(model.family))),
      row("model.hidden", of_run, "widths of the hidden dense layers, or of the layers of an LSTM",
          numbers(FIELD(model.hidden))),
      row("model.channels", of_run, "channels of each stage of a CNN", numbers(FIELD(model.stage_channels))),
      row("model.blocks", of_run, "residual blocks per stage of a CNN; 0: one plain convolution per stage",
          whole(0, 64, FIELD(model.blocks))),
      row("model.pool_every", of_run, "number of CNN stages between two poolings",
          whole(1, 64, FIELD(model.pool_every))),
      row("model.groups", of_run, "groups of a CNN's GroupNorm; 0: no normalization",
          whole(0, 4096, FIELD(model.groups))),
      row("model.weights", of_peer,
          "start from this safetensors file, or from this folder, whose config.json then decides the model's keys; "
          "with model.adapter: the frozen base; all peers need the same content, at any path",
          text(FIELD(weights))),
      row("model.context", of_run, "context length of a language model, or length of an LSTM's window, tokens",
          whole(1, 1 << 20, FIELD(model.context))),
      row("model.layers", of_run, "number of blocks of a GPT or Llama", whole(1, 1 << 10, FIELD(model.layers))),
      row("model.heads", of_run, "number of attention heads of a GPT or Llama", whole(1, 1 << 10, FIELD(model.heads))),
      row("model.embedding", of_run, "width of a GPT or Llama, or of an LSTM's embedding",
          whole(1, 1 << 16, FIELD(model.embedding))),
      row("model.precision", of_peer,
          "input precision of a GPU's matrix products; sums are fp32, and a CPU always uses fp32",
          choice({"fp32", "tf32", "bf16"}, FIELD(precision))),
  };
}

std::vector<RunKeyRow> llama_keys() {
  return {
      row("model.kv_heads", of_run, "Llama: groups of heads that share keys and values; 0: each head has its own",
          whole(0, 1 << 10, FIELD(model.kv_heads))),
      row("model.head_size", of_run, "Llama: size of a head; 0: model.embedding / model.heads",
          whole(0, 1 << 12, FIELD(model.head_size))),
      row("model.feed_forward", of_run, "Llama: width of the feed-forward part; 0: 8/3 of model.embedding",
          whole(0, 1 << 20, FIELD(model.feed_forward))),
      row("model.rope_base", of_run, "Llama: base of the rotary positions", real(1.001, 1e12, FIELD(model.rope_base))),
      row("model.rope_scaling", of_run,
          "Llama: slower rotations for longer contexts: none, \"linear FACTOR\" or \"llama3 FACTOR LOW HIGH CONTEXT\"",
          rope_scaling(FIELD(model.rope_scaling))),
      row("model.norm_epsilon", of_run, "Llama: added to the mean square of a norm",
          real(1e-12, 1, FIELD(model.norm_epsilon))),
      row("model.tied_head", of_run, "GPT, Llama: predict tokens with the table of the embedding, not one of its own",
          truth(FIELD(model.tied_head))),
      row("model.qkv_bias", of_run, "Llama: biases for queries, keys and values, as Qwen2 has",
          truth(FIELD(model.qkv_bias))),
  };
}

std::vector<RunKeyRow> training_keys() {
  return {
      row("run.name", of_run, "name of the run, shown to people", text(FIELD(name))),
      row("run.seed", of_run, "seed of the initial weights; part of the run's identity",
          whole(0, INT64_MAX, FIELD(seed))),
      row("run.owner", of_run, "public key of the owner, who signs join tokens and revocations",
          text(FIELD(owner), read_owner)),
      row("run.samples", of_run,
          "planned length in samples of all peers together; the learning-rate schedule spans it",
          whole(1, samples_unbounded, FIELD(samples))),
      row("data.kind", of_run, "format of the data",
          choice({"idx", "cifar10", "synthetic", "text", "tokens"}, FIELD(data.kind))),
      row("data.seed", of_run, "seed of synthetic data", whole(0, INT64_MAX, FIELD(data.seed))),
      row("data.skew", of_run,
          "pieces of the label-sorted data set that each peer gets, for unlike peers; 0: all peers alike",
          whole(0, 1000, FIELD(data.skew))),
      row("data.path", of_peer, "path of the data on this machine; empty: where Debian's packages install it",
          text(FIELD(data.path))),
      row("data.tokens", of_run,
          "tokenizer.json whose tokens a text becomes; all peers need the same tokenizer, at any path; empty: bytes",
          {[](RunConfig& c, const RunValue& given) {
             const std::string before = c.data.tokens;
             RunKeyProblem problem = read_text(given, c.data.tokens);
             if (c.data.tokens != before) c.data.tokenizer.reset();
             return problem;
           },
           [](const RunConfig& c) { return quoted(c.data.tokens); }, tokenizer_hash}),
      row("data.resolution", of_run,
          "CNN: pixels a side of the pictures from each share of the run on, as [[0, 14], [0.5, 28]]; small pictures "
          "cost less; not set: whole pictures always",
          resolution(FIELD(resolution))),
      row("optimizer.kind", of_run, "optimizer of a local step",
          choice({"sgd", "momentum", "rmsprop", "adam", "adamw", "nadamw", "adaptive_revision", "muon"},
                 FIELD(optimizer.kind))),
      row("optimizer.rate", of_run, "peak learning rate of four peers together", real(1e-9, 1e3, FIELD(rate))),
      row("optimizer.rate_scaling", of_run, "how the learning rate grows with the number of peers",
          choice({"sqrt", "none"}, FIELD(rate_scaling))),
      row("optimizer.adam_scaling", of_run,
          "Muon: the same for what is no hidden matrix (embeddings, output layer, vectors); same: as rate_scaling",
          choice({"same", "sqrt", "none"}, FIELD(adam_scaling))),
      row("optimizer.warmup", of_run, "share of the run in which the learning rate rises",
          real(0, 1, FIELD(schedule.warmup))),
      row("optimizer.floor", of_run, "final learning rate, as a share of the peak",
          real(0, 1, FIELD(schedule.floor))),
      row("optimizer.adam_share", of_run,
          "Muon: learning rate of what is no hidden matrix, as a share of optimizer.rate",
          real(1e-6, 1e6, FIELD(optimizer.adam_share))),
      row("optimizer.adam_beta1", of_run, "Muon: beta1 of what is no hidden matrix",
          real(0, 0.9999, FIELD(optimizer.adam_beta1))),
      row("optimizer.momentum", of_run, "momentum, or beta1 of Adam",
          real(0, 0.9999, FIELD(optimizer.momentum))),
      row("optimizer.beta2", of_run, "beta2 of Adam, RMSProp and Muon", real(0, 0.999999, FIELD(optimizer.beta2))),
      row("optimizer.weight_decay", of_run, "weight decay of AdamW and Muon",
          real(0, 0.9999, FIELD(optimizer.weight_decay))),
      row("optimizer.clip", of_run, "largest norm of a gradient; 0: no limit",
          real(0, 1e9, FIELD(optimizer.clip))),
      row("optimizer.hogwild", of_peer, "threads that update the same weights without locks; 0: off",
          whole(0, 64, FIELD(hogwild))),
      row("optimizer.hogwild_batches", of_peer, "mini-batches per update with optimizer.hogwild",
          whole(1, 1024, FIELD(hogwild_batches))),
      row("optimizer.batch", of_run, "samples of a mini-batch", whole(1, 4096, FIELD(batch))),
      row("optimizer.global_batch", of_run,
          "samples of a mini-batch of all peers: each takes its share, 1 to optimizer.batch; 0, and in "
          "stages: optimizer.batch",
          whole(0, 1u << 24, FIELD(global_batch))),
  };
}

std::vector<RunKeyRow> exchange_keys() {
  return {
      row("exchange.mode", of_run,
          "training method; only the simulator runs others than broadcast, average and codistill",
          choice({std::begin(exchange_modes), std::end(exchange_modes)}, FIELD(mode))),
      row("exchange.in_flight_weight", of_run,
          "share of own updates in flight added to the weights trained on; auto: 1/2, and 0 where data are unlike",
          in_flight_weight(FIELD(in_flight_weight))),
      row("exchange.period_ms", of_peer, "shortest time between two updates of this peer, milliseconds",
          real(0, 3.6e6, FIELD(period_ms))),
      row("exchange.staleness_scale", of_peer, "the learning rate is divided by staleness to this power; 0: off",
          real(0, 4, FIELD(staleness.scale))),
      row("exchange.brake_from", of_peer, "staleness, in updates, above which the learning rate is lowered; 0: off",
          real(0, 1000, FIELD(staleness.brake_from))),
      row("exchange.soft_sync", of_peer,
          "updates of other peers that a step waits for, at most as many as there are peers; 0: off",
          whole(0, 4096, FIELD(staleness.soft_sync))),
      row("exchange.steps_ahead", of_peer,
          "updates by which a peer may lead the slowest one before its steps wait; 0: off",
          whole(0, 1'000'000, FIELD(staleness.steps_ahead))),
      row("exchange.staleness_bound", of_peer,
          "a step waits until each peer's newest update lacks no more than this many of our last updates; 1: peers "
          "go in step; 0: off",
          whole(0, 1'000'000, FIELD(staleness.staleness_bound))),
      row("exchange.trainers", of_peer, "peers that train at once, in turn, by their shards; 0: all",
          whole(0, 4096, FIELD(turns.trainers))),
      row("exchange.turn_updates", of_peer, "updates that such a peer makes in a turn",
          whole(1, 1'000'000, FIELD(turns.turn_updates))),
      row("exchange.narrow_links", of_peer,
          "what gives way where links carry less than a peer would send: thin: entries of updates; wait: steps",
          choice({narrow_thin, narrow_wait}, FIELD(narrow_links))),
      row("exchange.flush_bits", of_peer,
          "bits a parameter that a peer may spend, before it ends, on what it has not sent yet; 0: none",
          real(0, 64, FIELD(flush_bits))),
      row("exchange.early_share", of_peer, "share of the run that is its early phase",
          real(0, 1, FIELD(early_share))),
      row("exchange.early_peers", of_peer, "number of shards that train in the early phase; 0: all",
          whole(0, 4096, FIELD(early_peers))),
      row("exchange.early_density", of_peer, "factor of the density in the early phase",
          real(0.01, 100, FIELD(early_density))),
  };
}

std::vector<RunKeyRow> compress_keys() {
  return {
      row("compress.density", of_peer, "entries of an update divided by the number of parameters",
          {read_density, [](const RunConfig& c) { return c.density > 0 ? str(c.density) : quoted("auto"); }, nullptr}),
      row("compress.bytes_per_update", of_peer, "instead of a density: payload bytes per update",
          byte_budget(64, FIELD(bytes_per_update), FIELD(bytes_per_second))),
      row("compress.bytes_per_second", of_peer,
          "instead of a density: payload bytes per second, all updates of this peer together",
          byte_budget(1, FIELD(bytes_per_second), FIELD(bytes_per_update))),
      row("compress.scope", of_peer, "global: all parameters ranked together; tensor: each tensor separately",
          {read_scope,
        [](const RunConfig& c) { return quoted(c.scope == compress::Scope::tensor ? "tensor" : "global"); }, nullptr}),
      row("compress.follow_rate", of_peer, "density follows the learning rate", truth(FIELD(follow_rate))),
      row("compress.emit", of_peer,
          "size of an entry: that of the smallest chosen entry (threshold), or the mean of the chosen",
          {read_emit, [](const RunConfig& c) { return quoted(c.emit == compress::Emit::mean ? "mean" : "threshold"); },
        nullptr}),
      row("compress.residual_decay", of_run,
          "share of the residual that fades while as many entries are sent as there are parameters; 0: nothing does",
          real(0, 1, FIELD(residual_decay))),
      row("compress.grid_bits", of_run, "weights are multiples of 2 to the minus this",
          whole(8, 30, FIELD(grid_bits))),
  };
}

std::vector<RunKeyRow> network_keys() {
  return {
      row("network.listen", of_peer, "address on which this peer accepts connections, HOST:PORT",
          text(FIELD(listen))),
      row("network.seeds", of_peer, "addresses of peers to dial first", texts(FIELD(seeds))),
      row("network.advertise", of_peer, "addresses at which others reach this peer, if not network.listen",
          texts(FIELD(advertise))),
      row("network.map_port", of_peer,
          "router to ask to forward the port (NAT-PMP, UPnP): auto or its address; empty: none",
          text(FIELD(map_port), read_router)),
      row("network.status", of_peer, "address of the page, /status and /metrics; empty: none",
          text(FIELD(status))),
      row("network.status_token", of_peer, "file with the token of the status address",
          text(FIELD(status_token))),
      row("network.events", of_peer,
          "file for events, one JSON object per line; rotated at 8 MiB, four old files are kept",
          text(FIELD(events))),
      row("network.tensorboard", of_peer, "directory for an event file of TensorBoard",
          text(FIELD(tensorboard))),
      row("network.allow", of_peer, "file of keys that may connect; read again when it changes",
          text(FIELD(allow))),
      row("network.revoke", of_peer, "file of the owner's revocations; read again when it changes",
          text(FIELD(revoke))),
      row("network.token", of_peer, "file with a join token", text(FIELD(token))),
      row("network.link_coding", of_peer, "coding of updates on links; auto: the smaller codings on slow links",
          {read_link_coding,
        [](const RunConfig& c) { return quoted(link_codings[static_cast<std::size_t>(c.link_coding)]); }, nullptr}),
      row("network.up_mbit", of_peer, "upload cap, 10^6 bits per second; 0: no cap",
          real(0, 1e6, FIELD(up_mbit))),
      row("network.down_mbit", of_peer, "download cap, 10^6 bits per second; 0: no cap",
          real(0, 1e6, FIELD(down_mbit))),
      row("network.log_mib", of_peer, "MiB of updates kept on disk for peers that were away",
          {read_log, [](const RunConfig& c) { return str(c.log_bytes >> 20); }, nullptr}),
  };
}

std::vector<RunKeyRow> audit_keys() {
  return {row("audit.record", of_run,
              "each update says how it was made, so that anybody with the log and the data can make it again",
              truth(FIELD(records))),
          row("audit.segment", of_run,
              "with audit.record: updates of a segment, the unit of audits by other peers; 0: no segments",
              whole(0, 4096, FIELD(segment))),
          row("audit.arithmetic", of_run,
              "with audit.record: steps that the run takes: any, or portable: those of built-in models on processors, "
              "which anybody can make again; a GPU or a program's model is refused then",
              choice({"any", "portable"}, FIELD(arithmetic))),
          row("audit.share", of_peer,
              "share of this peer's compute that it spends on making segments of others again; 0: it checks nobody",
              real(0, 0.5, FIELD(audit_share)))};
}

// `rumor peer --stage` and `rumor sim` train in stages.
std::vector<RunKeyRow> pipeline_keys() {
  return {
      row("pipeline.stages", of_run, "stages that the model is cut into, each a `rumor peer --stage`; 1: not cut",
          whole(1, limits::stages_max, FIELD(pipeline.stages))),
      row("pipeline.cut", of_run, "layers, convolutions or blocks of each stage; not set: as even as possible",
          numbers(FIELD(pipeline.cut))),
      row("pipeline.micro_batches", of_run, "micro-batches of a step of a stage; they divide optimizer.batch",
          whole(1, 1 << 16, FIELD(pipeline.micro_batches))),
      row("pipeline.overlap", of_peer,
          "this peer begins the next step's micro-batches while it waits for those of a step; costs memory for a "
          "second copy of its stage's weights and gradient",
          truth(FIELD(pipeline.overlap))),
      row("pipeline.recompute", of_peer,
          "this peer keeps the activations of one micro-batch only, and computes the others a second time",
          truth(FIELD(pipeline.recompute))),
      row("pipeline.border", of_run, "numbers of activations and their gradients between stages",
          choice({"f32", "bf16", "int8"}, FIELD(pipeline.border))),
      row("pipeline.exits", of_run,
          "weights of the losses of exits, small heads at the end of each stage but the last, as [0.3, 0.3]; for "
          "`rumor serve`; not set: no exits",
          weights(FIELD(pipeline.exits))),
  };
}

// Unlike orders and the usual targets by name are one choice.
std::string adapter_targets(const RunConfig& config) {
  const models::ModelConfig& model = config.model;
  std::vector<std::string> targets = model.adapter.targets;
  if (targets.empty()) targets = models::usual_adapter_targets(model.family);
  std::sort(targets.begin(), targets.end());
  targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
  return shown_list(targets);
}

std::vector<RunKeyRow> adapter_keys() {
  Kind targets = texts(FIELD(model.adapter.targets));
  targets.printed = adapter_targets;
  return {
      row("model.adapter", of_run,
          "lora: freeze the GPT or Llama in model.weights, and train and exchange low-rank adapters alone",
          choice({"none", "lora"}, FIELD(model.adapter.kind))),
      row("model.adapter_rank", of_run, "rank of the adapters' matrices", whole(1, 4096, FIELD(model.adapter.rank))),
      row("model.adapter_alpha", of_run, "weight of the adapters: they are multiplied by this number / rank",
          real(1e-6, 1e6, FIELD(model.adapter.alpha))),
      row("model.adapter_targets", of_run,
          "projections that have adapters, as PEFT names them; not set: q_proj and v_proj, or c_attn of a GPT",
          std::move(targets)),
      row("model.adapter_start", of_peer,
          "start from the adapters in this folder, as rumor export and PEFT write it; all peers need the same content, "
          "at any path",
          text(FIELD(model.adapter.start))),
  };
}

// The simulator alone knows these methods, except local_steps, which broadcast has too.
std::vector<RunKeyRow> method_keys() {
  return {
      row("exchange.local_steps", of_peer,
          "mini-batches per update, or steps between two rounds; auto: as many as the delay of updates wants",
          {read_local_steps, [](const RunConfig& c) {
             return c.round_rules.local_steps > 0 ? str(c.round_rules.local_steps) : quoted("auto"); }, nullptr}),
      row("exchange.participation", of_peer, "share of the peers that take part in a round",
          real(1e-6, 1, FIELD(round_rules.participation))),
      row("exchange.outer", of_peer, "outer optimizer of rounds",
          choice({"none", "nesterov", "sparse"}, FIELD(round_rules.outer))),
      row("exchange.outer_rate", of_peer, "learning rate of the outer optimizer",
          optional(1e-6, 100, FIELD(round_rules.outer_rate))),
      row("exchange.outer_momentum", of_peer, "momentum of the outer optimizer",
          optional(0, 0.9999, FIELD(round_rules.outer_momentum))),
      row("exchange.penalty", of_peer, "penalty of ADMM, rho", real(1e-9, 1e6, FIELD(round_rules.penalty))),
      row("exchange.servers", of_peer, "number of shards of the parameter server",
          whole(1, 1'000'000, FIELD(server_rules.servers))),
      row("exchange.push_every", of_peer, "steps between two pushes to the parameter server",
          whole(1, 1'000'000, FIELD(server_rules.push_every))),
      row("exchange.fetch_every", of_peer, "steps between two fetches from the parameter server",
          whole(1, 1'000'000, FIELD(server_rules.fetch_every))),
      row("exchange.neighbours", of_peer,
          "neighbours that a peer looks for to exchange copies; it accepts half as many more",
          even(FIELD(neighbour_rules.neighbours))),
      row("exchange.consensus_rate", of_peer,
          "how fast a model moves towards its neighbours' copies; 0: derived from the density",
          real(0, 1, FIELD(neighbour_rules.consensus_rate))),
      row("exchange.drift_bound", of_peer,
          "squared distance to its public copy above which a peer publishes; 0: always publish",
          real(0, 1e12, FIELD(neighbour_rules.drift_bound))),
      row("exchange.teachers", of_peer,
          "neighbours whose predictions a step learns from; steps rotate through all neighbours",
          whole(1, 1'000'000, FIELD(neighbour_rules.teachers))),
      row("exchange.refresh_every", of_peer, "steps between two updates of this peer's public copy",
          whole(1, 1'000'000, FIELD(neighbour_rules.refresh_every))),
      row("exchange.agreement", of_peer, "weight of the teachers' predictions; the labels have weight 1",
          real(0, 100, FIELD(neighbour_rules.agreement))),
  };
}

}  // namespace

const std::vector<RunKeyRow>& run_key_table() {
  static const std::vector<RunKeyRow> rows = [] {
    std::vector<RunKeyRow> list = model_keys();
    for (std::vector<RunKeyRow> more :
         std::array{llama_keys(), training_keys(), exchange_keys(), compress_keys(), network_keys(), method_keys(),
                    audit_keys(), pipeline_keys(), adapter_keys()})
      for (RunKeyRow& row : more) list.push_back(std::move(row));
    return list;
  }();
  return rows;
}

bool is_llama_key(std::string_view name) {
  static const std::vector<RunKeyRow> rows = llama_keys();
  return std::any_of(rows.begin(), rows.end(), [&](const RunKeyRow& row) { return row.name == name; });
}

std::string_view run_key_help(std::string_view name) {
  for (const RunKeyRow& row : run_key_table())
    if (row.name == name) return row.help;
  return {};
}

}  // namespace rumor
