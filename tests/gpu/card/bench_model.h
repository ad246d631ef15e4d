// Cost of a layer of GPT-2 124M and its head on a GPU, slot by slot, and of a whole step (8 rows of 1024 tokens).
#pragma once

#include <string>

#include "gpu/device/device.h"
#include "models/families/model.h"

namespace rumor::gpu {

// The parts that can be measured one by one, each a JSON object; null where cuBLASLt is not there. Emulated: of small
// shapes, everything is run and nothing measured.
//   kernels   seconds of each slot, of products the operations a second
//   gpt2      a training step: kernel by kernel, recorded and repeated (gpu/device/repeated.h), and tokens a second
//   llama     the same of a Llama of 125 million parameters: 12 layers of 768, 12 heads with 4 of keys and values, a
//             feed-forward part of 2048, 32,000 tokens
//   muon      Muon's step of GPT-2, likewise
//   mlp       a step of a small MLP, likewise
std::string kernel_benchmarks(const Gpu& gpu, bool emulated);
std::string gpt2_benchmark(const Gpu& gpu, bool emulated);
std::string llama_benchmark(const Gpu& gpu, bool emulated);
std::string muon_benchmark(const Gpu& gpu, bool emulated);
std::string mlp_benchmark(const Gpu& gpu, bool emulated);
models::ModelConfig gpt2_config(bool emulated);
models::ModelConfig llama_config(bool emulated);

// Writes a model of that shape as it begins, and the losses of its first ten steps in float32, as metadata: AdamW at
// `rate`, on `rows` rows of one batch, whose token i is (31 i^2 + 17 i) mod the vocabulary. A safetensors file.
// False where cuBLASLt is not there.
bool write_losses(const Gpu& gpu, bool emulated, const std::string& path);

// One JSON object: how many GPUs, seconds of such a step on one and on all of them, each with 8 rows, and of adding up
// their gradients; or a string that says why that was skipped.
std::string group_benchmarks(const GpuTable& table, bool emulated);

}  // namespace rumor::gpu
