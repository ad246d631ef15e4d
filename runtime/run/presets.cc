// The built-in run files. Each is the text that a user would write, with comments for that user.
#include "runtime/run/run_config.h"

namespace rumor {

namespace {

constexpr std::string_view fashion_mlp =
    R"toml(# Fashion-MNIST with a small MLP: ten kinds of clothing, 28 x 28 grey pixels, 118,282 parameters.
[run]
name = "fashion-mlp"
seed = 1
samples = 480000          # all peers together: 8 passes over the 60,000 images

[model]
family = "mlp"
hidden = [128, 128]       # 784-128-128-10

[data]
kind = "idx"              # the four MNIST-style files; Debian and Ubuntu: apt install dataset-fashion-mnist

[optimizer]
kind = "sgd"              # no momentum: the delay in the residual already acts as momentum, and more hurts
rate = 0.35               # peak learning rate of four peers together; each peer takes rate / (live peers)
rate_scaling = "sqrt"     # up to sixteen peers, the learning rate grows with the square root of their number
warmup = 0.05             # linear rise over the first 5 %, then cosine to 1 %; the decay shrinks residuals too
floor = 0.01
batch = 16                # samples per step; one update per step
                          # hogwild = 2: two threads update the same weights without locks, each with its own
                          # mini-batches, hogwild_batches = 8 per update; each peer may choose differently

[exchange]
mode = "broadcast"        # every update reaches every peer; replicas are equal bit for bit
in_flight_weight = "auto" # train on the shared weights plus half of the own updates that others have not answered;
                          # 0 instead where the data of peers are unlike, and others do not move as this peer does
period_ms = 4             # at most 250 updates per second and peer: peers that share a processor stay within about
                          # a step of each other; a model with longer steps never waits
                          # staleness_scale = 1, soft_sync = 2, steps_ahead = 4, staleness_bound = 1: rules against
                          # late updates; off by default, and each peer may choose differently (runtime/METHODS.md)

[compress]
density = 0.001           # one weight in 1,000: 118 entries per update. Entries per parameter over the whole run
                          # decide: density * updates of all peers, 30 here. Below 20, accuracy suffers.
                          # Instead of a number: "auto", bytes_per_update = 190, or bytes_per_second = 50000
scope = "global"          # all parameters ranked together; "tensor": a share and a step for each tensor
emit = "threshold"        # an entry moves its weight by the size of the smallest chosen entry
grid_bits = 24            # weights are multiples of 2^-24, between -128 and 128
)toml";

constexpr std::string_view fashion_cnn =
    R"toml(# Fashion-MNIST with a small convolutional network: two convolutions of 3 x 3, 421,738 parameters.
[run]
name = "fashion-cnn"
seed = 1
samples = 480000          # all peers together: 8 passes over the 60,000 images

[model]
family = "cnn"
channels = [32, 64]       # one convolution each: 28 x 28 x 32, halved to 14 x 14, then x 64, halved to 7 x 7
pool_every = 1            # a 2 x 2 max pooling after each convolution
groups = 8                # GroupNorm: it does not depend on the other pictures of a batch
blocks = 0                # residual blocks per stage: channels = [16, 32, 64], blocks = 1, hidden = [] is a ResNet-8
hidden = [128]            # 3,136 features - 128 - 10

[data]
kind = "idx"              # the four MNIST-style files; Debian and Ubuntu: apt install dataset-fashion-mnist

[optimizer]
kind = "sgd"              # no momentum: the delay in the residual already acts as momentum, and more hurts
rate = 0.1                # peak learning rate of four peers together; one peer alone takes half
rate_scaling = "sqrt"
warmup = 0.05
floor = 0.01
batch = 8                 # samples per step; one update per step. The residual drains once per step, so many
                          # peers need many small steps: 16 peers reach 92.4 % with 8 samples, 91.0 % with 32

[exchange]
mode = "broadcast"
in_flight_weight = "auto"

[compress]
density = 0.003           # 1,265 entries per update; 180 per parameter over the whole run
scope = "global"
emit = "threshold"
grid_bits = 24
)toml";

constexpr std::string_view text_gpt =
    R"toml(# The King James Bible, byte by byte, with a small GPT of 842,496 parameters; see `rumor sample`.
[run]
name = "text-gpt"
seed = 1
samples = 48000           # rows of 128 bytes, all peers together: 6.1 million bytes, one and a half times the text

[model]
family = "gpt"            # GPT-2's architecture
layers = 4
heads = 4
embedding = 128
context = 128             # context length, bytes

[data]
kind = "text"             # a text as bytes; Debian and Ubuntu: apt install bible-kjv-text
path = "bible-kjv-text"   # this package, "dict-gcide", or your own file or folder

[optimizer]
kind = "muon"             # momentum made orthogonal for the matrices within the blocks, AdamW for all else
momentum = 0.9
beta2 = 0.99
rate = 0.02               # peak learning rate of four peers together; each peer takes rate / (live peers)
rate_scaling = "sqrt"
warmup = 0.05             # also covers the steps in which the mean squared gradients are still inaccurate
floor = 0.01
batch = 4                 # rows per mini-batch; Muon takes a quarter of such a step, and a seventh with 8 rows
global_batch = 16         # rows of all peers' mini-batches: from five peers on, each takes fewer than 4

[exchange]
mode = "broadcast"
in_flight_weight = "auto"
local_steps = "auto"      # mini-batches per update: 4 to 16, as many as the delay of others' updates wants
trainers = 4              # of five peers and more, four at once, in turn; each needs its own --shard I/N
period_ms = 4

[compress]
density = 0.02            # of each mini-batch: 16,850 entries; 240 per parameter over the whole run
scope = "tensor"          # each tensor ranked by itself
emit = "mean"             # an entry moves its weight by the mean of the chosen entries
residual_decay = 0.3      # share of the unsent that fades while as many entries are sent as there are parameters
grid_bits = 24
)toml";

constexpr std::string_view text_lstm =
    R"toml(# The King James Bible, byte by byte, with an LSTM of 411,904 parameters; see `rumor sample`.
[run]
name = "text-lstm"
seed = 1
samples = 48000           # rows of 128 bytes, all peers together: 6.1 million bytes, one and a half times the text

[model]
family = "lstm"           # PyTorch's nn.LSTM between an embedding and a linear head
hidden = [256]            # units of each layer, one to three layers of equal width
embedding = 64
context = 128             # bytes of back-propagation through time; the state goes on from row to row

[data]
kind = "text"             # a text as bytes; Debian and Ubuntu: apt install bible-kjv-text
path = "bible-kjv-text"   # this package, "dict-gcide", or your own file or folder

[optimizer]
kind = "muon"             # momentum made orthogonal for the recurrent and input matrices, AdamW for all else
momentum = 0.9
beta2 = 0.99
rate = 0.02               # peak learning rate of four peers together; each peer takes rate / (live peers)
rate_scaling = "sqrt"
warmup = 0.05             # also covers the steps in which the mean squared gradients are still inaccurate
floor = 0.01
batch = 4                 # lanes: each walks its own part of the text

[exchange]
mode = "broadcast"
in_flight_weight = "auto"
local_steps = "auto"      # mini-batches per update: 4 to 16, as many as the delay of others' updates wants
period_ms = 4

[compress]
density = 0.02            # of each mini-batch
scope = "tensor"          # each tensor ranked by itself
emit = "mean"             # an entry moves its weight by the mean of the chosen entries
residual_decay = 0.3      # share of the unsent that fades while as many entries are sent as there are parameters
grid_bits = 24
)toml";

constexpr std::string_view llama_tiny =
    R"toml(# The King James Bible, byte by byte, with a small Llama of 1,017,216 parameters; see `rumor sample`.
[run]
name = "llama-tiny"
seed = 1
samples = 48000           # rows of 128 bytes, all peers together: 6.1 million bytes, one and a half times the text

[model]
family = "llama"          # the architecture of Llama, Mistral and Qwen2
layers = 5
heads = 4
kv_heads = 2              # groups of heads that share keys and values
embedding = 128
feed_forward = 384
context = 128             # context length, bytes
# weights = "FOLDER"      # begin with a model from Hugging Face; its config.json then decides these keys

[data]
kind = "text"             # a text as bytes; Debian and Ubuntu: apt install bible-kjv-text
path = "bible-kjv-text"   # this package, "dict-gcide", or your own file or folder
# tokens = "FILE"         # a tokenizer.json, for tokens instead of bytes; that of model.weights is taken by itself

[optimizer]
kind = "muon"             # momentum made orthogonal for the matrices within the blocks, AdamW for all else
momentum = 0.9
beta2 = 0.99
rate = 0.02               # peak learning rate of four peers together; each peer takes rate / (live peers)
rate_scaling = "sqrt"
warmup = 0.05
floor = 0.01
batch = 4                 # rows per mini-batch
global_batch = 16         # rows of all peers' mini-batches: from five peers on, each takes fewer than 4

[exchange]
mode = "broadcast"
in_flight_weight = "auto"
local_steps = "auto"      # mini-batches per update: 4 to 16, as many as the delay of others' updates wants
trainers = 4              # of five peers and more, four at once, in turn; each needs its own --shard I/N
period_ms = 4

[compress]
density = 0.02            # of each mini-batch: 20,344 entries
scope = "tensor"          # each tensor ranked by itself
emit = "mean"             # an entry moves its weight by the mean of the chosen entries
residual_decay = 0.3      # share of the unsent that fades while as many entries are sent as there are parameters
grid_bits = 24
)toml";

constexpr std::string_view synthetic =
    R"toml(# A synthetic task that needs no files: 10 overlapping clusters and a small MLP, for experiments and tests.
[run]
name = "synthetic"
seed = 1
samples = 60000

[model]
family = "mlp"
hidden = [64]

[data]
kind = "synthetic"
seed = 1

[optimizer]
kind = "sgd"
rate = 0.3
rate_scaling = "sqrt"
warmup = 0.05
floor = 0.01
batch = 16

[exchange]
mode = "broadcast"
in_flight_weight = "auto"
period_ms = 4

[compress]
density = 0.01            # a small model and a short run need more entries per update
emit = "threshold"
grid_bits = 24
)toml";

}  // namespace

std::string_view preset_text(std::string_view name) {
  if (name == "fashion-mlp") return fashion_mlp;
  if (name == "fashion-cnn") return fashion_cnn;
  if (name == "synthetic") return synthetic;
  if (name == "text-gpt") return text_gpt;
  if (name == "text-lstm") return text_lstm;
  if (name == "llama-tiny") return llama_tiny;
  return {};
}

std::vector<std::string> preset_names() {
  return {"fashion-mlp", "fashion-cnn", "synthetic", "text-gpt", "text-lstm", "llama-tiny"};
}

}  // namespace rumor
