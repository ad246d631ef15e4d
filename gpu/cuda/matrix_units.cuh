// Matrix units: products of small bfloat16 matrices with float32 sums. A warp multiplies; each lane has a part of each
// matrix, in the layout of the PTX ISA for mma.m16n8k16 ("Matrix fragments") and ldmatrix:
//   sum  16 x 8    numbers 0 and 1 are in row lane / 4, 2 and 3 in row lane / 4 + 8; columns lane % 4 * 2 and the next
//   a    16 x 16   words of two neighbours in a row: rows lane / 4 and + 8 of columns lane % 4 * 2, then the same of
//                  columns 8 further on
//   b    16 x 8    words of two neighbours in a column, lane / 4: of rows lane % 4 * 2, and of rows 8 further on
//
// Those functions are called by whole warps. Also copies from device to shared memory beside a thread's other work (PTX
// ISA, "cp.async"). The emulation (tests/gpu/emulation/emulated_matrix_units.h) computes products as sums in C++, and
// copies at once.
#pragma once

#include "gpu/cuda/rounding.cuh"

#if defined(__CUDACC__)

namespace rumor::gpu {

// sum += a b.
__device__ __forceinline__ void multiply_add(float (&sum)[4], const std::uint32_t (&a)[4], std::uint32_t b_above,
                                             std::uint32_t b_below) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_above), "r"(b_below));
}

// Loads four matrices of 8 x 8 from shared memory. Lane i gives the address of row i % 8 of matrix i / 8, a multiple of
// 16 bytes. out[m]: row lane / 4 of matrix m, columns lane % 4 * 2 and the next.
__device__ __forceinline__ void load_matrices(std::uint32_t (&out)[4], const Bf16* row) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(address)
               : "memory");
}

// Loads the same matrices transposed. out[m]: rows lane % 4 * 2 and the next of matrix m, column lane / 4.
__device__ __forceinline__ void load_matrices_turned(std::uint32_t (&out)[4], const Bf16* row) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(address)
               : "memory");
}

// Begins a copy of 8 or 16 bytes, or writes zeros if not `there`; then `from` is not read. Both addresses are multiples
// of `bytes`. The copy has arrived for this thread after the wait, for others after a barrier behind it.
template <int bytes>
__device__ __forceinline__ void begin_copy(void* to, const void* from, bool there) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  const int read = there ? bytes : 0;
  if (bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(read) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(address), "l"(from), "r"(read) : "memory");
}
// Ends a group of copies. wait_for_copies<n>() waits for all groups but the last n.
__device__ __forceinline__ void end_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int but>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(but) : "memory");
}

}  // namespace rumor::gpu

#endif
