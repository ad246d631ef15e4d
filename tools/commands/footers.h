// Below the options of each command's help: examples, and the facts that a user needs beside them.
//
// Thread: constants.
#pragma once

namespace rumor::tools {

inline constexpr const char* peer_footer =
    "Start one peer, then others that join it:\n"
    "  rumor peer fashion-mlp --listen 127.0.0.1:7001 --shard 1/2 --state peer-1\n"
    "  rumor peer fashion-mlp --seed 127.0.0.1:7001 --shard 2/2 --state peer-2\n"
    "A peer joins as soon as any one seed answers. Until then it trains alone and keeps dialling.\n"
    "Each peer chooses how it computes and how much it sends, for example Hogwild! with two workers:\n"
    "  rumor peer fashion-mlp --set optimizer.hogwild=2 --set exchange.period_ms=0\n"
    "A model that is cut into stages takes a peer or more for each stage, with a seed of any stage:\n"
    "  rumor peer fashion-mlp --set pipeline.stages=2 --stage 1/2 --listen 127.0.0.1:7001 --state stage-1\n"
    "  rumor peer fashion-mlp --set pipeline.stages=2 --stage 2/2 --seed 127.0.0.1:7001 --state stage-2\n"
    "or one process for several stages, which are stage-1 and stage-2 in its state directory:\n"
    "  rumor peer fashion-mlp --set pipeline.stages=2 --stage 1,2/2 --listen 127.0.0.1:7001 --state both\n"
    "or peers that choose their stages, and fill one whose peers have all gone:\n"
    "  rumor peer fashion-mlp --set pipeline.stages=2 --stage auto --seed 127.0.0.1:7001 --state peer-3\n"
    "A peer that was stopped or killed resumes from its state directory, or from the other peers.";

inline constexpr const char* follow_footer =
    "A follower is a peer that does not train. It dials one peer of the run, takes its weights, applies every update\n"
    "from then on, and writes the weights into a folder, for PyTorch, Hugging Face or `rumor sample`:\n"
    "  rumor follow text-gpt --seed 192.0.2.7:7001 --export newest --every 10m --state follower\n"
    "  rumor sample newest --prompt 'And God said'\n"
    "The folder holds the last export at every moment, whole: each is written beside it and renamed. The metadata of\n"
    "model.safetensors says of which run and digest the weights are, after how many samples, and who trained how\n"
    "much. A full disk costs an export, not the follower: it says so and tries again.\n"
    "No data are needed, but with --best the test set. Weights are exported then only when their loss on it is the\n"
    "lowest so far:\n"
    "  rumor follow text-gpt --seed 192.0.2.7:7001 --export best --best\n"
    "With --audit, in a run with audit.record = true, it draws updates of all peers at random, as many as it has time\n"
    "for, and makes them again. What differs is proven to all peers, which check it and put the cheat out:\n"
    "  rumor follow run.toml --seed 192.0.2.7:7001 --audit --status 127.0.0.1:7734\n"
    "The swarm keeps one link for a follower. If that peer goes, the follower dials another one. With --state it goes\n"
    "on after a restart where it was, on any machine, as long as no two processes use the directory at once.\n"
    "Where strangers are kept out, peers list the follower's key or the owner gives it a token, and the follower\n"
    "knows them in the same way (`rumor key --help`): rumor key token RUN --observe --owner DIR --out t.tok.\n"
    "Ctrl-C exports the weights of that moment and ends.";

inline constexpr const char* key_footer =
    "A peer's key is its identity. Two things keep strangers out of a run, alone or together: an allowlist\n"
    "of keys on each peer (network.allow = \"FILE\"), and an owner (run.owner = \"KEY\", the same on all\n"
    "peers) who signs join tokens:\n"
    "  rumor key new --state peer-1                       on each machine; prints the key\n"
    "  rumor key allow allowed.txt KEY --remark Ann       on each machine; running peers read it again\n"
    "  rumor key token run.toml --owner boss --out t.tok  by the owner; send t.tok to the new peer\n"
    "  rumor peer run.toml --token t.tok --seed HOST:PORT --state peer-9\n"
    "A token is a secret: whoever holds it may join. --key limits it to one peer.\n"
    "A process that serves several stages has a key for each, and needs all on the list, or --uses for each:\n"
    "  rumor key new --state both/stage-1; rumor key new --state both/stage-2\n"
    "  rumor key show --state both";

inline constexpr const char* sim_footer =
    "The simulation runs the real peer code in virtual time: the same seed gives the same run, to the last bit.\n"
    "  rumor sim fashion-mlp --nodes 16 --report out       then open out/index.html\n"
    "  rumor sim synthetic --network home --faults light   slow links, resets, killed nodes\n"
    "  rumor sim fashion-mlp --daemons                     four real processes on loopback\n"
    "  rumor sim fashion-mlp --set exchange.mode=sync --set optimizer.kind=adam --set "
    "optimizer.rate=0.003\n"
    "                                                      dense averaging, the baseline\n"
    "  rumor sim synthetic --stages 2 --nodes 4            the model in two stages, two peers each\n"
    "  rumor sim synthetic --faults storm --sim-seed 7     inject the faults drawn from one seed\n"
    "  rumor sim --protocol-only --nodes 200 --network wan how updates of 240 kB spread\n"
    "  rumor sim --protocol-only --faults storm --sim-seed 7  the same without training";

inline constexpr const char* compare_footer =
    "Every method sees the same number of samples and tries the same number of learning rates; the table shows\n"
    "the best one. Methods: broadcast (Rumor's own); sync (dense averaging by a ring all-reduce at every step; with\n"
    "keys, local SGD, FedAvg, DiLoCo or SparseLoCo); downpour (a parameter server, sharded over the peers); admm;\n"
    "average (with neighbours only); codistill; pipeline (the model in pipeline.stages); alone (one peer with all\n"
    "the data). Keys of the run file may follow a method; run.samples lets a faster method see more samples:\n"
    "  rumor compare synthetic --nodes 8 --network home --report out\n"
    "  rumor compare fashion-mlp --methods broadcast,sync:optimizer.kind=adam:optimizer.rate=0.002,alone\n"
    "  rumor compare fashion-mlp --methods broadcast,broadcast:exchange.soft_sync=3 --step-factors 1,1,2,4\n"
    "  rumor compare synthetic --methods broadcast,average,sync:exchange.local_steps=10 --nodes 8 --network wan\n"
    "  rumor compare fashion-mlp --methods broadcast,pipeline:pipeline.stages=2 --nodes 6\n"
    "  rumor compare fashion-mlp --frontier out --keep kept    then open out/index.html\n"
    "--frontier draws loss against bytes and against time. It runs each method at several densities, or numbers of\n"
    "local steps, and marks the settings that no other beats in both. Without --methods it takes broadcast,\n"
    "averaging with neighbours, SparseLoCo, local SGD, dense averaging and one peer alone: 18 settings with three\n"
    "learning rates each. --rates 1 takes a third of that time.\n"
    "With --keep DIR finished trials are stored, and the same command resumes after an interruption. Methods that\n"
    "work in rounds learn the same on every network, so on another network only their time and bytes are computed.";

inline constexpr const char* stats_footer =
    "SOURCE is a running peer's status address, a state directory, a capture, or a safetensors file of "
    "updates:\n"
    "dense tensors STEP/NAME (F32, BF16, F16 or F64), or sparse STEP/NAME.index (U32) and STEP/NAME.sign (U8).\n"
    "To see how well your model would compress, dump what each step changes (learning rate x gradient):\n"
    "  tensors[f'{step}/{name}'] = -lr * p.grad              in Python, for some 50 steps\n"
    "  safetensors.torch.save_file(tensors, 'steps.safetensors')\n"
    "  rumor stats steps.safetensors --density 0.001 --report out";

inline constexpr const char* sample_footer =
    "  rumor peer text-gpt --state peer-1        train for some minutes, then press Ctrl-C\n"
    "  rumor sample peer-1 --prompt 'And God said'\n"
    "SOURCE is the state directory of a peer (running or not), a directory with model.safetensors (or its\n"
    "shards and index) and config.json, or a safetensors file. Byte models write text. Other models write\n"
    "text if tokenizer.json or vocab.json is in the same folder, else token numbers. A peer that trains with\n"
    "data.tokens keeps its tokenizer.json there. The same seed writes the same text on every machine.\n"
    "With --live SOURCE is the run: it is followed, as `rumor follow` does, until this process has all that the peer\n"
    "at HOST:PORT (its --listen address) has. Then the text is written with these weights:\n"
    "  rumor sample text-gpt --live 127.0.0.1:7001 --prompt 'And God said'";

inline constexpr const char* status_footer =
    "ADDRESS is the peer's --status address; open it in a browser for a page:\n"
    "  rumor peer fashion-mlp --status 127.0.0.1:7734\n"
    "  rumor status 127.0.0.1:7734\n"
    "To reach a peer on another machine without --status-token, open a tunnel:\n"
    "  ssh -L 7734:127.0.0.1:7734 that.machine";

inline constexpr const char* top_footer =
    "With one address it shows figures and neighbours, with several one line each. Press q or Ctrl-C to quit.\n"
    "If stdout is not a terminal, it prints once.\n"
    "  rumor top 127.0.0.1:7734 127.0.0.1:7735";

inline constexpr const char* doctor_footer =
    "Without arguments it checks the machine; with a run file also data, disk, ports and seeds. With --peer it asks\n"
    "a running peer at its status address. Of a model in stages it says what the borders ask of a link.\n"
    "  rumor doctor run.toml --state peer-1\n"
    "  rumor doctor --peer 127.0.0.1:7734\n"
    "Only another machine can check that this one accepts connections. Run there:\n"
    "  rumor doctor --dial my.host.name:7001\n"
    "Exit status 1 if something is broken.";

inline constexpr const char* export_footer =
    "Tensors have the names and shapes of PyTorch and Hugging Face:\n"
    "  rumor export peer-1 --to weights.safetensors\n"
    "  model.load_state_dict(safetensors.torch.load_file('weights.safetensors'))\n"
    "  rumor export peer-1 --to gpt                         a folder: config.json and model.safetensors\n"
    "  transformers.GPT2LMHeadModel.from_pretrained('gpt')\n"
    "To start a run from such a file: rumor peer RUN --weights FILE.\n"
    "A run with model.adapter gives PEFT's folder, adapter_config.json and adapter_model.safetensors; --merged gives\n"
    "the whole model:\n"
    "  rumor export peer-1 --to adapters\n"
    "  peft.PeftModel.from_pretrained(base, 'adapters')\n"
    "  rumor peer RUN --weights BASE --adapters adapters    a run goes on from them\n"
    "  rumor export peer-1 --to model --merged\n"
    "A folder for inference elsewhere, in bfloat16 and in files of 2 GB:\n"
    "  rumor export peer-1 --to gpt --dtype bf16 --shard-size 2GB\n"
    "The mean over the end of a run is often the better model while the learning rate is high:\n"
    "  rumor export peer-1 --to mean.safetensors --average 0.1\n"
    "A model that is cut is joined from one peer of each stage, in any order:\n"
    "  rumor export stage-1 stage-2 stage-3 --to gpt";

inline constexpr const char* help_footer =
    "  rumor help peer                 same as rumor peer --help\n"
    "  rumor help --markdown           the reference: commands, options, run file keys, metrics, exit status\n"
    "  rumor help --man peer | man -l -\n"
    "  source <(rumor help --completion bash)";

}  // namespace rumor::tools
