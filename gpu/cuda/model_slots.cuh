// The slots of a ModelTable: which kernels each slot starts, in which grids. Included by gpu/cuda/slots.cuh, which says
// what must be defined before.
#pragma once

#include "gpu/cuda/activations.cuh"
#include "gpu/cuda/attention.cuh"
#include "gpu/cuda/attention_bf16.cuh"
#include "gpu/cuda/attention_bf16_back.cuh"
#include "gpu/cuda/columns.cuh"
#include "gpu/cuda/cross_entropy.cuh"
#include "gpu/cuda/embedding.cuh"
#include "gpu/cuda/grids.cuh"
#include "gpu/cuda/layer_norm.cuh"
#include "gpu/cuda/optimizer.cuh"
#include "gpu/cuda/rounding.cuh"
#include "gpu/device/table.h"

namespace rumor::gpu {

namespace machine {

// Computes a product of non-zero sizes into bare_product(). If it includes the epilogue, the result goes to args->y and
// *finished becomes true.
Status product(Device* device, const MatmulArgs* args, bool* finished, ErrorText* error);

}  // namespace machine

namespace slots {

// Blocks of kernels whose threads take one column of a chunk.
inline std::uint64_t chunk_blocks(Matrix size) {
  return chunks_of(size.rows) * blocks_of(size.columns, column_threads);
}

inline bool is_empty(Matrix size) {
  return size.rows == 0 || size.columns == 0;
}

// Calls start(a number of the type of `numbers`); the type selects the kernel.
template <class Start>
void by_kind(const ConstNumbers& numbers, const Start& start) {
  if (numbers.bf16) return start(Bf16{});
  start(float{});
}

inline void round(Device* device, std::uint64_t count, const float* from, Bf16* to) {
  if (count == 0) return;
  launch(*device, round_to_bf16, stride_blocks(count, eight * activation_threads), activation_threads, count, from, to);
}

inline void bias_relu(Device* device, Matrix size, const float* bias, float* x) {
  if (!is_empty(size)) launch(*device, add_bias_relu<float>, chunk_blocks(size), column_threads, size, bias, x);
}

inline void relu_backward(Device* device, std::uint64_t count, const float* activation, float* change) {
  if (count == 0) return;
  launch(*device, back_through_relu, stride_blocks(count, activation_threads), activation_threads, count, activation,
         change);
}

inline void bias_gelu(Device* device, Matrix size, const float* bias, float* x, float* y) {
  if (!is_empty(size)) launch(*device, add_bias_gelu<float>, chunk_blocks(size), column_threads, size, bias, x, y);
}

inline void gelu_backward(Device* device, std::uint64_t count, ConstNumbers x, Numbers change) {
  if (count == 0) return;
  by_kind(x, [&](auto kind) {
    using Number = decltype(kind);
    launch(*device, back_through_gelu<Number>, stride_blocks(count, eight * activation_threads), activation_threads,
           count, those_of<Number>(x), those_of<Number>(change));
  });
}

// The second half of sums of columns: joins partial [chunks, columns], or [chunks, 2, columns] where `second` is not
// null.
inline void join_chunks(Device* device, Matrix size, const float* partial, float* sum, float* second) {
  const std::uint64_t split = size.columns, columns = second != nullptr ? 2 * split : split;
  launch(*device, sum_rows, blocks_of(columns, column_threads), column_threads,
         static_cast<std::uint32_t>(chunks_of(size.rows)), columns, partial, split, sum, second);
}

inline void column_sums(Device* device, Matrix size, ConstNumbers x, float* partial, float* sum) {
  if (size.columns == 0) return;
  by_kind(x, [&](auto kind) {
    using Number = decltype(kind);
    if (size.rows == 0) return;
    launch(*device, sum_chunks<Number>, chunk_blocks(size), column_threads, size, those_of<Number>(x), partial);
  });
  join_chunks(device, size, partial, sum, nullptr);
}

inline void square_sum(Device* device, std::uint64_t count, const float* x, double* partial, double* total) {
  const std::uint64_t partials = square_partials(count);
  if (count != 0) launch(*device, sum_squares, partials, step_threads, count, x, partial);
  launch(*device, join_squares, 1, step_threads, partials, partial, total);
}

inline void scale(Device* device, std::uint64_t count, float factor, float* x) {
  if (count == 0) return;
  launch(*device, scale_values, stride_blocks(count, step_threads), step_threads, count, factor, x);
}

// Starts a kernel of layer norm for each row; the width selects which.
template <class Number>
void norm_rows_of(Device* device, const LayerNormArgs& args) {
  const auto start = [&](auto* kernel) {
    launch(*device, kernel, blocks_of(args.size.rows, norm_rows), norm_threads, args);
  };
  const std::uint32_t columns = args.size.columns;
  if (columns == 48 * norm_lanes) return start(norm_each_row<Number, RowForm<48, true>>);
  if (columns == 64 * norm_lanes) return start(norm_each_row<Number, RowForm<64, true>>);
  if (columns <= 16 * norm_lanes) return start(norm_each_row<Number, RowForm<16, false>>);
  if (columns <= 64 * norm_lanes) return start(norm_each_row<Number, RowForm<64, false>>);
  start(norm_each_long_row<Number>);
}
template <class Number>
void norm_back_rows_of(Device* device, const LayerNormChange& args) {
  const auto start = [&](auto* kernel) {
    launch(*device, kernel, blocks_of(args.size.rows, norm_rows), norm_threads, args);
  };
  const std::uint32_t columns = args.size.columns;
  if (columns == 48 * norm_lanes) return start(norm_back_each_row<Number, RowForm<48, true>>);
  if (columns == 64 * norm_lanes) return start(norm_back_each_row<Number, RowForm<64, true>>);
  if (columns <= 16 * norm_lanes) return start(norm_back_each_row<Number, RowForm<16, false>>);
  if (columns <= 64 * norm_lanes) return start(norm_back_each_row<Number, RowForm<64, false>>);
  start(norm_back_each_long_row<Number>);
}

inline void layer_norm(Device* device, const LayerNormArgs* args) {
  if (is_empty(args->size)) return;
  by_kind(args->y, [&](auto kind) { norm_rows_of<decltype(kind)>(device, *args); });
}

inline void layer_norm_backward(Device* device, const LayerNormChange* args) {
  const Matrix size = args->size;
  if (size.columns == 0) return;
  by_kind(args->change, [&](auto kind) {
    using Number = decltype(kind);
    if (size.rows == 0) return;
    norm_back_rows_of<Number>(device, *args);
    launch(*device, norm_back_chunks<Number>, chunk_blocks(size), column_threads, *args);
  });
  join_chunks(device, size, args->partial, args->gain_change, args->bias_change);
}

// Starts the kernel of cross-entropy for rows of this width.
template <class Number>
void entropy_rows_of(Device* device, const CrossEntropyArgs& args) {
  const auto start = [&](auto* kernel) { launch(*device, kernel, args.size.rows, entropy_threads, args); };
  const std::uint32_t columns = args.size.columns;
  const std::size_t row_bytes = (args.stride != 0 ? args.stride : columns) * sizeof(Number);
  if (reinterpret_cast<std::uintptr_t>(args.x.at) % 16 != 0 || row_bytes % 16 != 0)
    return start(entropy_each_row<Number>);
  if (columns <= held_columns<4>) return start(entropy_each_held_row<Number, 4>);
  if constexpr (sizeof(Number) == sizeof(Bf16)) {
    if (columns <= held_columns<16>) return start(entropy_each_held_row<Number, 16>);
    if (columns <= held_columns<25>) return start(entropy_each_held_row<Number, 25>);
  }
  start(entropy_each_row<Number>);
}

inline void cross_entropy(Device* device, const CrossEntropyArgs* args) {
  by_kind(args->x, [&](auto kind) {
    if (!is_empty(args->size)) entropy_rows_of<decltype(kind)>(device, *args);
  });
  launch(*device, add_losses, 1, total_threads, args->size.rows, args->loss, args->total);
}

inline void embed(Device* device, const EmbedArgs* args) {
  if (args->rows != 0 && args->width != 0) launch(*device, embed_rows, args->rows, embed_threads, *args);
}

inline void embed_backward(Device* device, const EmbedChange* args) {
  if (args->width == 0) return;
  if (args->distinct != 0) launch(*device, embed_back_tokens, args->distinct, embed_threads, *args);
  if (args->context != 0 && args->position_gradient != nullptr)
    launch(*device, embed_back_places, args->context, embed_threads, *args);
}

// Blocks of attention kernels; each block has `rows` rows of a head, of queries or of keys.
inline std::uint64_t look_blocks(const AttentionArgs& args, unsigned rows) {
  return std::uint64_t{args.batch} * args.heads * blocks_of(args.context, rows);
}
inline std::uint64_t key_blocks(const AttentionArgs& args, unsigned rows) {
  return std::uint64_t{args.batch} * key_heads(args) * blocks_of(args.context, rows);
}

template <unsigned dims>
void attention_of(Device* device, const AttentionArgs& args) {
  launch(*device, attend<dims>, look_blocks(args, look_rows), look_threads, args);
}
template <unsigned dims>
void attention_backward_of(Device* device, const AttentionChange& args) {
  launch(*device, attend_back_queries<dims>, look_blocks(args.forward, look_rows), look_threads, args);
  launch(*device, attend_back_keys<dims>, key_blocks(args.forward, look_rows), look_threads, args);
}
template <unsigned size>
void attention_bf16_of(Device* device, const AttentionArgs& args) {
  launch(*device, attend_bf16<size>, look_blocks(args, query_rows<size>), look_threads, args);
}
template <unsigned size>
void attention_bf16_backward_of(Device* device, const AttentionChange& args) {
  launch(*device, attend_bf16_back_queries<size>, look_blocks(args.forward, query_rows<size>), look_threads, args);
  launch(*device, attend_bf16_back_keys<size>, key_blocks(args.forward, key_rows), look_threads, args);
}

inline void attention(Device* device, const AttentionArgs* args) {
  if (look_blocks(*args, look_rows) == 0) return;
  const std::uint32_t size = args->head_size;
  if (args->qkv.bf16) {
    if (size <= 32) return attention_bf16_of<32>(device, *args);
    if (size <= 64) return attention_bf16_of<64>(device, *args);
    return attention_bf16_of<128>(device, *args);
  }
  if (size <= 16) return attention_of<4>(device, *args);
  if (size <= 32) return attention_of<8>(device, *args);
  if (size <= 64) return attention_of<16>(device, *args);
  attention_of<32>(device, *args);
}

inline void attention_backward(Device* device, const AttentionChange* args) {
  if (look_blocks(args->forward, look_rows) == 0) return;
  const std::uint32_t size = args->forward.head_size;
  if (args->forward.qkv.bf16) {
    if (size <= 32) return attention_bf16_backward_of<32>(device, *args);
    if (size <= 64) return attention_bf16_backward_of<64>(device, *args);
    return attention_bf16_backward_of<128>(device, *args);
  }
  if (size <= 16) return attention_backward_of<4>(device, *args);
  if (size <= 32) return attention_backward_of<8>(device, *args);
  if (size <= 64) return attention_backward_of<16>(device, *args);
  attention_backward_of<32>(device, *args);
}

// The output of a product before its epilogue is applied.
inline Numbers bare_product(const MatmulArgs& args) {
  return args.epilogue == Epilogue::bias_gelu ? args.before : args.y;
}

template <class Number>
void finish_product(Device* device, const MatmulArgs& args) {
  const Matrix size = {args.rows, args.columns};
  const Number* bias = those_of<Number>(args.bias);
  Number *const y = those_of<Number>(args.y), *const before = those_of<Number>(args.before);
  switch (args.epilogue) {
    case Epilogue::none:
      return;
    case Epilogue::bias:
      return launch(*device, add_bias<Number>, chunk_blocks(size), column_threads, size, bias, y);
    case Epilogue::bias_relu:
      return launch(*device, add_bias_relu<Number>, chunk_blocks(size), column_threads, size, bias, y);
    case Epilogue::bias_gelu:
      return launch(*device, add_bias_gelu<Number>, chunk_blocks(size), column_threads, size, bias, before, y);
    case Epilogue::gelu_back:
      return gelu_backward(device, std::uint64_t{args.rows} * args.columns, before, y);
  }
}

inline Status matmul(Device* device, const MatmulArgs* args, ErrorText* error) {
  if (args->rows == 0 || args->columns == 0 || args->batch == 0) return Status::ok;
  bool finished = false;
  if (args->depth != 0) {
    const Status status = machine::product(device, args, &finished, error);
    if (status != Status::ok) return status;
  } else if (!args->add) {
    const Numbers y = bare_product(*args);
    for (std::uint32_t m = 0; m < args->batch; ++m)
      fill_bytes(*device, y.from(m * args->y_step).at, 0, y.bytes(layout_of_y(*args).extent()));
  }
  if (!finished) by_kind(args->y, [&](auto kind) { finish_product<decltype(kind)>(device, *args); });
  return Status::ok;
}

}  // namespace slots

inline ModelTable model_table() {
  ModelTable table = {};
  table.matmul = slots::matmul;
  table.round = slots::round;
  table.bias_relu = slots::bias_relu;
  table.relu_backward = slots::relu_backward;
  table.bias_gelu = slots::bias_gelu;
  table.gelu_backward = slots::gelu_backward;
  table.column_sums = slots::column_sums;
  table.square_sum = slots::square_sum;
  table.scale = slots::scale;
  table.layer_norm = slots::layer_norm;
  table.layer_norm_backward = slots::layer_norm_backward;
  table.cross_entropy = slots::cross_entropy;
  table.embed = slots::embed;
  table.embed_backward = slots::embed_backward;
  table.attention = slots::attention;
  table.attention_backward = slots::attention_backward;
  return table;
}

}  // namespace rumor::gpu
