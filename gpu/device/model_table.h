// ModelTable: the functions that a model needs on a GPU besides matrix products (gpu/device/table.h), as plain function
// pointers.
//
// Every slot has a reference on the CPU, in models/. Equal to it bit for bit: bias, ReLU, GELU, sums of columns, layer
// norm, embedding. Within a tolerance, because sums are joined in another order: cross-entropy, attention, sums of
// squares. In both cases the order is fixed and no sum uses atomics, so two runs on one GPU give the same bits.
// tests/gpu/kernels/*_kernels_test.cc compare.
//
// Matrices are row-major without gaps. All pointers are device memory and need only the alignment of their type.
// Outputs overlap no inputs unless a slot says so. Any size is valid, zero included.
// Order, thread: as gpu/device/table.h. C++17 and no library types.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rumor::gpu {

struct Device;
enum class Status : int;
struct ErrorText;

// Rows are summed in chunks of `chunk_rows`, then the chunk sums are summed. `partial` must have room for the chunk
// sums.
inline constexpr std::uint32_t chunk_rows = 64;
inline constexpr std::size_t chunks_of(std::uint32_t rows) {
  return rows / chunk_rows + (rows % chunk_rows != 0 ? 1 : 0);
}

// Squares are summed in stretches of `square_stretch` values, then the sums of the stretches are summed.
inline constexpr std::size_t square_stretch = 8192;
inline constexpr std::size_t square_partials(std::size_t count) {
  return count / square_stretch + (count % square_stretch != 0 ? 1 : 0);
}

struct Matrix {
  std::uint32_t rows, columns;
};

// A bfloat16: the upper half of a float. Conversions round to the nearest, ties to even.
struct Bf16 {
  std::uint16_t bits;
};

// A pointer to floats or to bfloat16 numbers. A model keeps product operands as bfloat16 where the product would round
// them anyway. This halves memory and traffic, and no number is rounded twice.
struct ConstNumbers {
  const void* at = nullptr;
  bool bf16 = false;
  ConstNumbers() = default;
  ConstNumbers(const float* floats) : at(floats) {}
  ConstNumbers(const Bf16* rounded) : at(rounded), bf16(true) {}
  // The numbers from number `first` on.
  ConstNumbers from(std::size_t first) const {
    if (bf16) return static_cast<const Bf16*>(at) + first;
    return static_cast<const float*>(at) + first;
  }
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
  // The numbers from number `first` on.
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
  const float* more;  // null: y is the norm of x. Otherwise of x + more, which is written to `sum`
  float* sum;         // may be x or more
  const float* gain;
  const float* bias;
  Numbers y;
  float* mean;   // [rows]
  float* scale;  // [rows]
};

// The backward pass, of the x or sum of the last forward pass.
struct LayerNormChange {
  Matrix size;  // at least one column
  const float* x;
  const float* gain;
  const float* mean;
  const float* scale;
  ConstNumbers change;  // d loss / d y
  float* x_change;      // added to
  Bf16* rounded;        // null, or receives a rounded copy of x_change for products
  float* partial;       // scratch: chunks_of(rows) * 2 * columns
  float* gain_change;   // [columns], overwritten
  float* bias_change;   // [columns], overwritten
};

// loss[r] = log sum e^x[r][c] - x[r][target[r]]; total = their sum, as a double. If `share` is above 0, x becomes the
// gradient of share * total: (softmax(x) - onehot) * share, and the gap behind each row, up to `stride`, becomes zeros:
// the gradient of columns that pad the vocabulary. Probabilities are never stored.
struct CrossEntropyArgs {
  Matrix size;                  // at least one column
  Numbers x;                    // logits; with a stride: rows * stride numbers, of which gaps are not read
  const std::uint16_t* target;  // [rows], each below `columns`
  float share;
  float* loss;               // [rows]
  double* total;             // one value
  std::uint32_t stride = 0;  // numbers from a row of x to the next; 0: no gaps
};

// Embedding of tokens and positions: models/layers/embedding.h. Row r of the batch is token[r], at position r %
// context.
struct EmbedArgs {
  std::uint32_t rows, width, context;
  const std::uint16_t* token;  // [rows]
  const float* table;          // [vocabulary, width]
  const float* position;       // [context, width]; null: no positions
  float* y;                    // [rows, width]
};

// The rows of one token are added in their order, without atomics: the caller has sorted them.
struct EmbedChange {
  std::uint32_t rows, width, context;
  const float* change;         // [rows, width], d loss / d y
  const std::uint32_t* row;    // [rows]: row numbers grouped by token, ascending within a token
  const std::uint32_t* first;  // [distinct + 1]: where each token's group in `row` begins, and the end
  const std::uint16_t* token;  // [distinct]: each token once; the value of one without rows does not matter
  std::uint32_t distinct;
  float* table_gradient;     // [vocabulary, width], added to
  float* position_gradient;  // [context, width], overwritten; null: no positions
};

// models/layers/attention.h: qkv [batch * context, (heads + 2 kv_heads) * head_size] -> y [batch * context, heads *
// head_size]. heads / kv_heads neighbouring heads share keys and values (Ainslie et al. 2023, "GQA"). No matrix of
// context x context exists: two numbers per row are kept, and the backward pass recomputes the softmax from them (Dao
// et al. 2022, "FlashAttention"). All numbers but those two are floats, or all are bfloat16. With bfloat16 the matrix
// units compute the products, with float32 sums; shares of the softmax and their changes are rounded to bfloat16 for
// them.
inline constexpr std::uint32_t head_size_max = 128;
struct AttentionArgs {
  std::uint32_t batch, context, heads, head_size;  // head_size: 1 to head_size_max
  ConstNumbers qkv;
  Numbers y;
  float* top;     // [batch, heads, context]: the largest q k^T among the columns that a row sees
  float* weight;  // same shape: 1 / sum of e^((q k^T - top) / sqrt(head_size))
  std::uint32_t kv_heads = 0;  // divides heads; 0: as many as heads
};
struct AttentionChange {
  AttentionArgs forward;  // of the last forward pass, with its outputs y, top and weight
  ConstNumbers change;    // d loss / d y
  float* dot;             // scratch: [batch, heads, context]; of bfloat16 twice as much, aligned to 8 bytes
  Numbers qkv_change;     // overwritten
};

// The precision of the operands of a matrix product; sums are always floats.
enum class Precision : std::uint32_t {
  fp32 = 0,
  tf32 = 1,  // rounded to 10 bits of mantissa by the matrix units
  bf16 = 2,  // operands that are not bfloat16 yet are rounded to the nearest first
};

// The operation applied to a product.
enum class Epilogue : std::uint32_t {
  none = 0,
  bias = 1,       // + bias[column]
  bias_relu = 2,  // and ReLU
  bias_gelu = 3,  // then GELU; its argument is written to `before`
  gelu_back = 4,  // times the slope of GELU at `before`: the backward pass of GELU
};

// y [rows, columns] = epilogue(a b), a [rows, depth], b [depth, columns]. Depth 0 gives a product of zeros. With
// precision bf16 each of a, b and y may be bfloat16; `before` and bias then have the type of y.
struct MatmulArgs {
  std::uint32_t rows, columns, depth;
  ConstNumbers a;
  ConstNumbers b;
  bool a_turned;  // a is stored as [depth, rows]
  bool b_turned;  // b is stored as [columns, depth]
  bool add;       // y += a b instead; epilogue none
  Numbers y;
  ConstNumbers bias;  // [columns], with an epilogue that adds it
  Numbers before;     // [rows, columns], with epilogues of GELU
  Precision precision;
  Epilogue epilogue;
  // Row strides (BLAS: leading dimensions): numbers from one stored row to the next; 0: no gaps. The contents of gaps
  // are unspecified afterwards, except those of a y of floats with a depth above 0, which stay. For tensor cores
  // cuBLAS's manual advises rows that begin at multiples of 16 bytes. y_stride needs epilogue none.
  std::uint32_t a_stride = 0, b_stride = 0, y_stride = 0;
  // That many products of one shape at once. a_step, b_step and y_step: numbers from the first of a matrix to the first
  // of the next. Matrices y share no number; one may lie in the gaps between the rows of another. More than one need
  // epilogue none. With precision bf16, floats are rounded from the first matrix to the last, with all between them.
  std::uint32_t batch = 1;
  std::uint64_t a_step = 0, b_step = 0, y_step = 0;
};
// The memory layout of a matrix: rows, numbers in each row, and numbers from one row to the next.
struct MatrixLayout {
  std::uint32_t rows, columns, stride;
  // Numbers from the first to the last. Requires: rows > 0.
  std::uint64_t extent() const { return std::uint64_t{rows - 1} * stride + columns; }
  // The same for `count` such matrices, each `step` numbers behind the one before. Requires: rows, count > 0.
  std::uint64_t extent(std::uint32_t count, std::uint64_t step) const { return (count - 1) * step + extent(); }
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
  // Computed by cuBLASLt on a GPU. Reference: the matrix product of models/kernels/kernel_table.h. The tolerance is
  // 1e-6 times the root of the depth times the largest result, for operands rounded as `precision` says. Every run on
  // one GPU gives the same bits. Errors are returned before anything begins and leave the device usable: no cuBLASLt,
  // no memory for its scratch (32 MiB; with bf16 also 2 bytes for each float of a and b), no such product. A batch is
  // one call of cuBLASLt; its reference is one product after another.
  Status (*matmul)(Device* device, const MatmulArgs* args, ErrorText* error);
  // to[i] = from[i], as bfloat16.
  void (*round)(Device* device, std::uint64_t count, const float* from, Bf16* to);

  // x += bias, by row; x = x < 0 ? 0 : x. NaN stays NaN.
  void (*bias_relu)(Device* device, Matrix size, const float* bias, float* x);
  // change = activation > 0 ? change : 0.
  void (*relu_backward)(Device* device, std::uint64_t count, const float* activation, float* change);

  // x += bias, by row; y = gelu(x), the tanh form of models/kernels/sequence_kernels.h.
  void (*bias_gelu)(Device* device, Matrix size, const float* bias, float* x, float* y);
  // change *= d gelu(x) / d x; both have one number type.
  void (*gelu_backward)(Device* device, std::uint64_t count, ConstNumbers x, Numbers change);

  // sum[c] = sum over r of x[r][c]: the gradient of a bias. partial: scratch, chunks_of(rows) * columns.
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
