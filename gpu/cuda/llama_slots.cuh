// The slots of a LlamaTable: which kernels each slot starts, in which grids. Included by gpu/cuda/slots.cuh, which says
// what must be defined before.
#pragma once

#include "gpu/cuda/llama.cuh"
#include "gpu/cuda/model_slots.cuh"
#include "gpu/device/llama_table.h"

namespace rumor::gpu {

namespace slots {

inline void rms_norm(Device* device, const RmsNormArgs* args) {
  if (is_empty(args->size)) return;
  by_kind(args->y, [&](auto kind) {
    launch(*device, rms_norm_each_row<decltype(kind)>, blocks_of(args->size.rows, norm_rows), norm_threads, *args);
  });
}

inline void rms_norm_backward(Device* device, const RmsNormChange* args) {
  const Matrix size = args->size;
  if (size.columns == 0) return;
  by_kind(args->change, [&](auto kind) {
    using Number = decltype(kind);
    if (size.rows == 0) return;
    launch(*device, rms_norm_back_each_row<Number>, blocks_of(size.rows, norm_rows), norm_threads, *args);
    launch(*device, rms_norm_back_chunks<Number>, chunk_blocks(size), column_threads, *args);
  });
  join_chunks(device, size, args->partial, args->gain_change, nullptr);
}

inline void turn_rows(Device* device, const RotaryArgs& args, float direction) {
  if (args.rows == 0) return;
  by_kind(args.qkv, [&](auto kind) {
    launch(*device, rotate_rows<decltype(kind)>, args.rows, rotary_threads, args, direction);
  });
}

inline void rotary(Device* device, const RotaryArgs* args) {
  turn_rows(device, *args, 1.0f);
}

inline void rotary_backward(Device* device, const RotaryArgs* args) {
  RotaryArgs bare = *args;
  bare.query_bias = bare.key_bias = bare.value_bias = nullptr;
  turn_rows(device, bare, -1.0f);
}

inline void swiglu(Device* device, Matrix size, ConstNumbers x, Numbers y) {
  if (is_empty(size)) return;
  by_kind(x, [&](auto kind) {
    using Number = decltype(kind);
    launch(*device, swiglu_rows<Number>, size.rows, swiglu_threads, size, those_of<Number>(x), those_of<Number>(y));
  });
}

inline void swiglu_backward(Device* device, Matrix size, ConstNumbers x, ConstNumbers change, Numbers x_change) {
  if (is_empty(size)) return;
  by_kind(x, [&](auto kind) {
    using Number = decltype(kind);
    launch(*device, back_through_swiglu<Number>, size.rows, swiglu_threads, size, those_of<Number>(x),
           those_of<Number>(change), those_of<Number>(x_change));
  });
}

}  // namespace slots

inline LlamaTable llama_table() {
  LlamaTable table = {};
  table.rms_norm = slots::rms_norm;
  table.rms_norm_backward = slots::rms_norm_backward;
  table.rotary = slots::rotary;
  table.rotary_backward = slots::rotary_backward;
  table.swiglu = slots::swiglu;
  table.swiglu_backward = slots::swiglu_backward;
  return table;
}

}  // namespace rumor::gpu
