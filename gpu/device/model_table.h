// ModelTable: what a model computes on a GPU besides its matrix products (gpu/device/table.h), as plain function
// pointers.
//
// Every slot has a reference on the CPU, in models/. The same bits: bias, ReLU, GELU, sums of columns, layer norm,
// embedding. Within a tolerance, because sums are joined in another order: cross-entropy, attention, sums of squares.
// The order is fixed either way, no sum uses atomics, so two runs on one GPU give the same bits;
// tests/gpu/kernels/*_kernels_test.cc compare.
//
// Matrices are row-major without gaps. All pointers are device memory, as unaligned as their type allows; outputs
// overlap no inputs unless said. Any size, zero included.
// Order, thread: as gpu/device/table.h. C++17 and no library types.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rumor::gpu {

struct Device;
enum class Status : int;
struct ErrorText;

// Rows are added up in chunks of so many, and then the sums of the chunks: what `partial` must have room for.
inline constexpr std::uint32_t chunk_rows = 64;
inline constexpr std::size_t chunks_of(std::uint32_t rows) {
  return rows / chunk_rows + (rows % chunk_rows != 0 ? 1 : 0);
}

// Squares are added up in stretches of so many values, and then the sums of the stretches.
inline constexpr std::size_t square_stretch = 8192;
inline constexpr std::size_t square_partials(std::size_t count) {
  return count / square_stretch + (count % square_stretch != 0 ? 1 : 0);
}

struct Matrix {
  std::uint32_t rows, columns;
};

// A bfloat16: the upper half of a float. What is written as one is rounded to the nearest, ties to even.
struct Bf16 {
  std::uint16_t bits;
};

// Where numbers lie that may be floats or bfloat16. Those of a model that products read are the latter where products
// would round them anyway: half of the memory and of the way to it, and nothing is rounded twice.
struct ConstNumbers {
  const void* at = nullptr;
  bool bf16 = false;
  ConstNumbers() = default;
  ConstNumbers(const float* floats) : at(floats) {}
  ConstNumbers(const Bf16* rounded) : at(rounded), bf16(true) {}
};
struct Numbers {
  void* at = nullptr;
  bool bf16 = false;
  Numbers() = default;
  Numbers(float* floats) : at(floats) {}
  Numbers(Bf16* rounded) : at(rounded), bf16(true) {}
  operator ConstNumbers() const {
    if (bf16) return static_cast<const Bf16*>(at);
    return static_cast<const float*>(at);
  }
  // Those from number `first` on.
  Numbers from(std::size_t first) const {
    if (bf16) return static_cast<Bf16*>(at) + first;
    return static_cast<float*>(at) + first;
  }
  std::size_t bytes(std::size_t count) const { return count * (bf16 ? sizeof(Bf16) : sizeof(float)); }
};

// y = (x - mean) * scale * gain + bias, by row, scale = 1 / sqrt(variance + 1e-5): models/layers/layer_norm.h.
struct LayerNormArgs {
  Matrix size;  // at least one column
  const float* x;
  const float* more;  // null: y is that of x. Else that of x + more, which goes to `sum`
  float* sum;         // may be x or more
  const float* gain;
  const float* bias;
  Numbers y;
  float* mean;   // [rows]
  float* scale;  // [rows]
};

// The way back, of the last forward's x, or sum.
struct LayerNormChange {
  Matrix size;  // at least one column
  const float* x;
  const float* gain;
  const float* mean;
  const float* scale;
  ConstNumbers change;  // d loss / d y
  float* x_change;      // is added to
  Bf16* rounded;        // null, or where x_change goes once more, for products
  float* partial;       // scratch: chunks_of(rows) * 2 * columns
  float* gain_change;   // [columns], overwritten
  float* bias_change;   // [columns], overwritten
};

// loss[r] = log sum e^x[r][c] - x[r][target[r]]; total = their sum, as a double.
// With `share` above 0, x becomes d (share * total) / d x: (softmax(x) - onehot) * share. Probabilities exist nowhere.
struct CrossEntropyArgs {
  Matrix size;                  // at least one column
  Numbers x;                    // logits
  const std::uint16_t* target;  // [rows], each below `columns`
  float share;
  float* loss;               // [rows]
  double* total;             // one
  std::uint32_t stride = 0;  // numbers from a row of x to the next; 0: no gaps
};

// Tokens and where they stand: models/layers/embedding.h. Row r of the batch is token[r], at place r % context.
struct EmbedArgs {
  std::uint32_t rows, width, context;
  const std::uint16_t* token;  // [rows]
  const float* table;          // [vocabulary, width]
  const float* position;       // [context, width]
  float* y;                    // [rows, width]
};

// The rows of one token meet in their order, without atomics: the caller has sorted them.
struct EmbedChange {
  std::uint32_t rows, width, context;
  const float* change;         // [rows, width], d loss / d y
  const std::uint32_t* row;    // [rows]: numbers of rows, those of one token together and ascending
  const std::uint32_t* first;  // [distinct + 1]: where in `row` those of each token begin, and the end
  const std::uint16_t* token;  // [distinct]: which they are, each once; of one without rows it does not matter
  std::uint32_t distinct;
  float* table_gradient;     // [vocabulary, width], is added to
  float* position_gradient;  // [context, width], overwritten
};

// models/layers/attention.h: qkv [batch * context, 3 d] -> y [batch * context, d], d = heads * head_size. No matrix of
// context x context exists: two numbers a row are kept, from which the way back makes the softmax again (Dao et al.
// 2022, "FlashAttention"). All numbers but those two are floats, or all are bfloat16; then products are those of the
// matrix units, of bfloat16 with float32 sums, shares of the softmax and their changes rounded for them as well.
inline constexpr std::uint32_t head_size_max = 128;
struct AttentionArgs {
  std::uint32_t batch, context, heads, head_size;  // head_size: 1 to head_size_max
  ConstNumbers qkv;
  Numbers y;
  float* top;     // [batch, heads, context]: the largest q k^T that a row looks at
  float* weight;  // the same: 1 / sum of e^((q k^T - top) / sqrt(head_size))
};
struct AttentionChange {
  AttentionArgs forward;  // of the last forward, its y, top and weight as they came out
  ConstNumbers change;    // d loss / d y
  float* dot;             // scratch: [batch, heads, context]
  Numbers qkv_change;     // overwritten
};

// How the numbers of a matrix product are taken; their sums are floats always.
enum class Precision : std::uint32_t {
  fp32 = 0,
  tf32 = 1,  // rounded to 10 bits of mantissa by the matrix units
  bf16 = 2,  // rounded to the nearest bfloat16 before, those that are not
};

// The operation applied to a product.
enum class Epilogue : std::uint32_t {
  none = 0,
  bias = 1,       // + bias[column]
  bias_relu = 2,  // and ReLU
  bias_gelu = 3,  // and GELU; what it is of goes to `before`
  gelu_back = 4,  // times the slope of GELU at `before`: the way back through it
};

// y [rows, columns] = epilogue(a b), a [rows, depth], b [depth, columns]. Depth 0: a product of zeros. With precision
// bf16 a and b may each be bfloat16 already, and y may become it; `before` and bias are then of the kind of y.
struct MatmulArgs {
  std::uint32_t rows, columns, depth;
  ConstNumbers a;
  ConstNumbers b;
  bool a_turned;  // a lies as [depth, rows]
  bool b_turned;  // b lies as [columns, depth]
  bool add;       // y += a b instead; epilogue none
  Numbers y;
  ConstNumbers bias;  // [columns], with an epilogue that adds it
  Numbers before;     // [rows, columns], with epilogues of GELU
  Precision precision;
  Epilogue epilogue;
  // Row strides (BLAS: leading dimensions): numbers from one row to the next of each, as it lies; 0: no gaps. What is
  // in a gap is unspecified afterwards. For tensor cores cuBLAS's manual advises rows that begin at multiples of 16
  // bytes. y_stride only with epilogue none.
  std::uint32_t a_stride = 0, b_stride = 0, y_stride = 0;
};
// How a matrix lies: rows, numbers in each, and from each to the next.
struct MatrixLayout {
  std::uint32_t rows, columns, stride;
  // Numbers from the first to the last. Requires rows.
  std::uint64_t extent() const { return std::uint64_t{rows - 1} * stride + columns; }
};
inline MatrixLayout layout_of_a(const MatmulArgs& args) {
  const std::uint32_t rows = args.a_turned ? args.depth : args.rows, columns = args.a_turned ? args.rows : args.depth;
  return {rows, columns, args.a_stride != 0 ? args.a_stride : columns};
}
inline MatrixLayout layout_of_b(const MatmulArgs& args) {
  const std::uint32_t rows = args.b_turned ? args.columns : args.depth;
  const std::uint32_t columns = args.b_turned ? args.depth : args.columns;
  return {rows, columns, args.b_stride != 0 ? args.b_stride : columns};
}
inline MatrixLayout layout_of_y(const MatmulArgs& args) {
  return {args.rows, args.columns, args.y_stride != 0 ? args.y_stride : args.columns};
}

struct ModelTable {
  // By cuBLASLt on a GPU. Reference: the matrix product of models/kernels/kernel_table.h, within 1e-6 times the root
  // of the depth of the largest result, of numbers rounded as `precision` says. Same bits in each run on one GPU. What
  // went wrong before anything began is said at once: no cuBLASLt, no memory for its scratch (32 MiB; bf16: 2 bytes
  // for each float of a and b besides), no such product. Such an error leaves the device usable.
  Status (*matmul)(Device* device, const MatmulArgs* args, ErrorText* error);
  // to[i] = from[i], as bfloat16.
  void (*round)(Device* device, std::uint64_t count, const float* from, Bf16* to);

  // x += bias, by row; x = x < 0 ? 0 : x. A NaN passes.
  void (*bias_relu)(Device* device, Matrix size, const float* bias, float* x);
  // change = activation > 0 ? change : 0.
  void (*relu_backward)(Device* device, std::uint64_t count, const float* activation, float* change);

  // x += bias, by row; y = gelu(x), the tanh form of models/kernels/sequence_kernels.h.
  void (*bias_gelu)(Device* device, Matrix size, const float* bias, float* x, float* y);
  // change *= d gelu(x) / d x; both of one kind.
  void (*gelu_backward)(Device* device, std::uint64_t count, ConstNumbers x, Numbers change);

  // sum[c] = sum over r of x[r][c]: a bias's gradient. partial: scratch, chunks_of(rows) * columns.
  void (*column_sums)(Device* device, Matrix size, ConstNumbers x, float* partial, float* sum);

  // total = the sum of x[i]^2, as a double: the norm of a gradient. partial: scratch, square_partials(count).
  void (*square_sum)(Device* device, std::uint64_t count, const float* x, double* partial, double* total);
  // x *= factor.
  void (*scale)(Device* device, std::uint64_t count, float factor, float* x);

  void (*layer_norm)(Device* device, const LayerNormArgs* args);
  void (*layer_norm_backward)(Device* device, const LayerNormChange* args);
  void (*cross_entropy)(Device* device, const CrossEntropyArgs* args);
  void (*embed)(Device* device, const EmbedArgs* args);
  void (*embed_backward)(Device* device, const EmbedChange* args);
  void (*attention)(Device* device, const AttentionArgs* args);
  void (*attention_backward)(Device* device, const AttentionChange* args);
};

}  // namespace rumor::gpu
