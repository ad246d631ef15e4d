// LlamaTable: what a Llama needs on a GPU besides the functions of other models of text (gpu/device/model_table.h).
//
// Every slot has a reference on the CPU, in models/layers/ and models/kernels/sequence_kernels.h, and equals it bit for
// bit. Numbers that are bfloat16 are rounded where they are written. tests/gpu/kernels/llama_kernels_test.cc compares.
//
// Matrices are row-major without gaps. All pointers are device memory; outputs overlap no inputs unless a slot says so.
// Any size is valid, zero included. Order, thread: as gpu/device/table.h. C++17 and no library types.
#pragma once

#include <cstdint>

#include "gpu/device/model_table.h"

namespace rumor::gpu {

// y = x * scale * gain, scale = 1 / sqrt(mean of x^2 + epsilon), by row: models/layers/rms_norm.h.
struct RmsNormArgs {
  Matrix size;  // at least one column
  const float* x;
  const float* more;  // null: y is the norm of x. Otherwise of x + more, which is written to `sum`
  float* sum;         // may be x or more
  const float* gain;
  float epsilon;
  Numbers y;
  float* scale;  // [rows]
};

// The backward pass, of the x or sum of the last forward pass.
struct RmsNormChange {
  Matrix size;  // at least one column
  const float* x;
  const float* gain;
  const float* scale;
  ConstNumbers change;  // d loss / d y
  float* x_change;      // added to
  Bf16* rounded;        // null, or receives a rounded copy of x_change for products
  float* partial;       // scratch: chunks_of(rows) * columns
  float* gain_change;   // [columns], overwritten
};

// Rows of `qkv` are those of AttentionArgs: heads of queries, then of keys, then of values. Row r has place r %
// context. Biases are added first, then queries and keys turn by their place: models/layers/rotary.h.
struct RotaryArgs {
  std::uint32_t rows, context, heads, kv_heads, head_size;  // head_size: even, at least 2
  const float* cosine;                                      // [context, head_size / 2]: models::Rotary::cosine()
  const float* sine;                                        // likewise
  const float* query_bias;                                  // [heads * head_size]; null: no biases
  const float* key_bias;                                    // [kv_heads * head_size]
  const float* value_bias;                                  // likewise
  Numbers qkv;                                              // in place
};

struct LlamaTable {
  void (*rms_norm)(Device* device, const RmsNormArgs* args);
  void (*rms_norm_backward)(Device* device, const RmsNormChange* args);

  void (*rotary)(Device* device, const RotaryArgs* args);
  // The same of a change of qkv: queries and keys turn back. Biases are not used.
  void (*rotary_backward)(Device* device, const RotaryArgs* args);

  // y = silu(gate) * up. x [rows, 2 columns]: gate and up of each row side by side; y [rows, columns] = `size`.
  // References: swiglu, swiglu_backward of models/kernels/sequence_kernels.h.
  void (*swiglu)(Device* device, Matrix size, ConstNumbers x, Numbers y);
  // change: d loss / d y -> x_change: d loss / d x, overwritten. All have one number type.
  void (*swiglu_backward)(Device* device, Matrix size, ConstNumbers x, ConstNumbers change, Numbers x_change);
};

}  // namespace rumor::gpu
