// Embedding, forward and backward pass: a block takes a row, a token or a position, and its threads take the columns.
// In the backward pass the rows of a token are one chain of additions, in the order of models/layers/embedding.cc.
#pragma once

#include "gpu/cuda/common.cuh"
#include "gpu/device/model_table.h"

namespace rumor::gpu {

constexpr unsigned embed_threads = 128;

__global__ void __launch_bounds__(embed_threads) embed_rows(EmbedArgs args) {
  const std::size_t row = blockIdx.x, width = args.width;
  const float* token = args.table + args.token[row] * width;
  const float* place = args.position == nullptr ? nullptr : args.position + row % args.context * width;
  for (std::uint32_t c = threadIdx.x; c < width; c += embed_threads)
    args.y[row * width + c] = place == nullptr ? token[c] : token[c] + place[c];
}

__global__ void __launch_bounds__(embed_threads) embed_back_tokens(EmbedChange args) {
  const std::uint32_t first = args.first[blockIdx.x], end = args.first[blockIdx.x + 1];
  if (first == end) return;
  const std::size_t width = args.width;
  float* gradient = args.table_gradient + args.token[blockIdx.x] * width;
  for (std::uint32_t c = threadIdx.x; c < width; c += embed_threads) {
    float sum = gradient[c];
    for (std::uint32_t r = first; r < end; ++r) sum += args.change[args.row[r] * width + c];
    gradient[c] = sum;
  }
}

__global__ void __launch_bounds__(embed_threads) embed_back_places(EmbedChange args) {
  const std::size_t width = args.width, place = blockIdx.x;
  for (std::uint32_t c = threadIdx.x; c < width; c += embed_threads) {
    float sum = 0;
    for (std::size_t row = place; row < args.rows; row += args.context) sum += args.change[row * width + c];
    args.position_gradient[place * width + c] = sum;
  }
}

}  // namespace rumor::gpu
