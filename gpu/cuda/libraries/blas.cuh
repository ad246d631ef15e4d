// Matrix products by cuBLASLt, which is opened for the first product. Compression needs no products, so it also works
// on a machine without cuBLASLt.
//
// A row-major matrix is the transpose of a column-major one, so y = a b is computed as y^T = b^T a^T. The bias, one per
// column of y, is then one per row, as cuBLASLt wants it. Kernels without a fixed order of additions (reduction in
// place) are never chosen, so two runs give the same bits.
//
// Plans (layouts and the heuristic's best algorithm) are cached by shape.
#pragma once

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <tuple>

#include "gpu/device/model_table.h"
#include "gpu/device/table.h"

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#define RUMOR_HAVE_CUBLASLT 1
#endif

namespace rumor::gpu {

inline Status blas_error(ErrorText* error, Status status, const char* what, const char* remedy) {
  std::snprintf(error->text, sizeof error->text, "%s; %s", what, remedy);
  return status;
}

// The operands as the product reads them, rounded where needed; y: the output of the bare product.
struct BlasOperands {
  const void* a;
  const void* b;
  void* y;
};

#if defined(RUMOR_HAVE_CUBLASLT)

// The library functions that this file uses.
struct BlasLibrary {
#define RUMOR_BLAS_FUNCTIONS(each)                                                                                \
  each(cublasLtCreate) each(cublasLtDestroy) each(cublasLtMatmul) each(cublasLtMatmulAlgoGetHeuristic)            \
      each(cublasLtMatmulDescCreate) each(cublasLtMatmulDescDestroy) each(cublasLtMatmulDescSetAttribute)         \
          each(cublasLtMatrixLayoutCreate) each(cublasLtMatrixLayoutDestroy) each(cublasLtMatmulPreferenceCreate) \
              each(cublasLtMatmulPreferenceDestroy) each(cublasLtMatmulPreferenceSetAttribute)                    \
                  each(cublasLtMatrixLayoutSetAttribute)
#define RUMOR_BLAS_MEMBER(name) decltype(&::name) name = nullptr;
  RUMOR_BLAS_FUNCTIONS(RUMOR_BLAS_MEMBER)
#undef RUMOR_BLAS_MEMBER

  // Opens the library once for the process. Status::failed names what is missing.
  static Status open(const BlasLibrary** library, ErrorText* error) {
    static BlasLibrary opened;
    static const bool there = opened.load();
    *library = &opened;
    if (there) return Status::ok;
    return blas_error(error, Status::failed, opened.missing_,
                      "install NVIDIA's cuBLAS, or put its folder into LD_LIBRARY_PATH");
  }

 private:
  bool load() {
    char name[64], usual[96];
    std::snprintf(name, sizeof name, "libcublasLt.so.%d", CUBLAS_VER_MAJOR);
    std::snprintf(usual, sizeof usual, "/usr/local/cuda/lib64/%s", name);
    void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) library = dlopen(usual, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      std::snprintf(missing_, sizeof missing_, "matrix products need %s, which is not here", name);
      return false;
    }
#define RUMOR_BLAS_LOAD(name)                                           \
  name = reinterpret_cast<decltype(name)>(dlsym(library, #name));       \
  if (name == nullptr) {                                                \
    std::snprintf(missing_, sizeof missing_, "cuBLASLt has no " #name); \
    return false;                                                       \
  }
    RUMOR_BLAS_FUNCTIONS(RUMOR_BLAS_LOAD)
#undef RUMOR_BLAS_LOAD
#undef RUMOR_BLAS_FUNCTIONS
    return true;
  }

  char missing_[128] = {};
};

// The products of one device. Thread: as the device.
class Blas {
 public:
  Blas() = default;
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;
  ~Blas() {
    for (auto& entry : plans_) destroy(entry.second);
    if (handle_ != nullptr) library_->cublasLtDestroy(handle_);
  }

  // Computes one product. Includes the epilogue, and sets *finished, if cuBLASLt supports it for this shape.
  // `workspace` has workspace_bytes.
  Status product(const MatmulArgs& args, BlasOperands operands, void* workspace, cudaStream_t stream, bool* finished,
                 ErrorText* error) {
    if (Status opened = open(error); opened != Status::ok) return opened;
    const Plan* plan = nullptr;
    for (const bool fused : {true, false}) {
      if (fused && !may_fuse(args)) continue;
      plan = &plan_of(args, operands, fused);
      if (plan->works) break;
    }
    if (!plan->works && args.batch > 1) return one_by_one(args, operands, workspace, stream, finished, error);
    if (!plan->works)
      return blas_error(error, Status::failed, "cuBLASLt has no product of this shape",
                        "use another model.precision, or a newer cuBLAS");
    *finished = plan->fused || args.epilogue == Epilogue::none;
    void* const y = plan->fused ? args.y.at : operands.y;
    if (plan->fused && !set_epilogue(plan->operation, args))
      return blas_error(error, Status::failed, "cuBLASLt refuses an epilogue", "use a newer cuBLAS");
    const float one = 1, beta = args.add ? 1.0f : 0.0f;
    const cublasStatus_t done =
        library_->cublasLtMatmul(handle_, plan->operation, &one, operands.b, plan->b, operands.a, plan->a, &beta, y,
                                 plan->y, y, plan->y, &plan->algorithm, workspace, workspace_bytes, stream);
    if (done == CUBLAS_STATUS_SUCCESS) return Status::ok;
    char text[96];
    std::snprintf(text, sizeof text, "a matrix product failed with cuBLAS status %d", static_cast<int>(done));
    return blas_error(error, Status::failed, text, "end what else runs on the GPU, or use --device cpu");
  }

  static constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

 private:
  struct Plan {
    bool works = false, fused = false;
    cublasLtMatmulDesc_t operation = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, y = nullptr;
    cublasLtMatmulAlgo_t algorithm = {};
  };
  using Key = std::tuple<std::array<std::uint32_t, 7>, std::array<std::uint64_t, 4>, std::uint32_t>;

  Status open(ErrorText* error) {
    if (handle_ != nullptr) return Status::ok;
    if (Status opened = BlasLibrary::open(&library_, error); opened != Status::ok) return opened;
    if (library_->cublasLtCreate(&handle_) == CUBLAS_STATUS_SUCCESS) return Status::ok;
    handle_ = nullptr;
    return blas_error(error, Status::out_of_memory, "cuBLASLt cannot start on this GPU",
                      "use a smaller model or batch, or end what else runs on it");
  }

  // A batch for which cuBLASLt has no product.
  Status one_by_one(MatmulArgs args, const BlasOperands& first, void* workspace, cudaStream_t stream, bool* finished,
                    ErrorText* error) {
    const std::uint64_t number = args.precision == Precision::bf16 ? sizeof(Bf16) : sizeof(float);
    const std::uint32_t batch = args.batch;
    args.batch = 1;
    Status status = Status::ok;
    for (std::uint32_t m = 0; m < batch && status == Status::ok; ++m) {
      const BlasOperands here = {static_cast<const char*>(first.a) + m * args.a_step * number,
                                 static_cast<const char*>(first.b) + m * args.b_step * number,
                                 static_cast<char*>(first.y) + args.y.bytes(m * args.y_step)};
      status = product(args, here, workspace, stream, finished, error);
    }
    return status;
  }

  // The accuracy of cuBLASLt's GELU relative to that of the kernels is not documented. It is used only where numbers
  // are rounded for the product anyway.
  static bool may_fuse(const MatmulArgs& args) {
    const bool gelu = args.epilogue == Epilogue::bias_gelu || args.epilogue == Epilogue::gelu_back;
    return args.epilogue != Epilogue::none && !(gelu && args.precision == Precision::fp32);
  }

  // The largest power of two, at most 256, that divides an address and the bytes from one matrix to the next.
  static std::uint32_t alignment_of(const void* pointer, std::uint64_t step_bytes = 0) {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer) | step_bytes | 256;
    return static_cast<std::uint32_t>(address & (~address + 1));
  }

  static std::uint64_t step_bytes(const MatmulArgs& args, std::uint64_t step, bool bf16) {
    return args.batch > 1 ? step * (bf16 ? sizeof(Bf16) : sizeof(float)) : 0;
  }
  // Those of a, b and the output y of the product.
  static std::array<std::uint32_t, 3> alignments(const MatmulArgs& args, const BlasOperands& operands, const void* y) {
    const bool rounds = args.precision == Precision::bf16;
    return {alignment_of(operands.a, step_bytes(args, args.a_step, rounds)),
            alignment_of(operands.b, step_bytes(args, args.b_step, rounds)),
            alignment_of(y, step_bytes(args, args.y_step, args.y.bf16))};
  }

  template <class T>
  bool set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute, const T& value) {
    return library_->cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value) ==
           CUBLAS_STATUS_SUCCESS;
  }
  template <class T>
  bool prefer(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
    return library_->cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value) ==
           CUBLAS_STATUS_SUCCESS;
  }

  // Sets the bias and, for GELU, the address of its argument, both of the type of y. They belong to one call, so each
  // call sets them.
  bool set_epilogue(cublasLtMatmulDesc_t operation, const MatmulArgs& args) {
    const cublasLtEpilogue_t kind = args.epilogue == Epilogue::bias        ? CUBLASLT_EPILOGUE_BIAS
                                    : args.epilogue == Epilogue::bias_relu ? CUBLASLT_EPILOGUE_RELU_BIAS
                                    : args.epilogue == Epilogue::bias_gelu ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS
                                                                           : CUBLASLT_EPILOGUE_DGELU;
    if (!set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, kind)) return false;
    if (args.epilogue != Epilogue::gelu_back && !set(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, args.bias.at))
      return false;
    if (args.epilogue != Epilogue::bias_gelu && args.epilogue != Epilogue::gelu_back) return true;
    const std::int64_t apart = args.columns;
    return set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, args.before.at) &&
           set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, apart);
  }

  const Plan& plan_of(const MatmulArgs& args, const BlasOperands& operands, bool fused) {
    const auto [a, b, y] = alignments(args, operands, fused ? args.y.at : operands.y);
    std::uint64_t aligned = 0;  // nine bits each
    for (const std::uint32_t one : {a, b, y, alignment_of(args.bias.at), alignment_of(args.before.at)})
      aligned = aligned << 9 | one;
    const std::uint32_t kind =
        static_cast<std::uint32_t>(args.precision) | (fused ? static_cast<std::uint32_t>(args.epilogue) : 0u) << 4 |
        (args.a_turned ? 1u : 0u) << 8 | (args.b_turned ? 1u : 0u) << 9 | (args.add ? 1u : 0u) << 10 |
        (args.y.bf16 ? 1u : 0u) << 11;
    const Key key{{args.rows, args.columns, args.depth, args.a_stride, args.b_stride, args.y_stride, args.batch},
                  {args.a_step, args.b_step, args.y_step, aligned},
                  kind};
    const auto found = plans_.find(key);
    if (found != plans_.end()) return found->second;
    Plan& plan = plans_[key];
    plan.fused = fused;
    plan.works = make(plan, args, operands, fused);
    return plan;
  }

  bool make(Plan& plan, const MatmulArgs& args, const BlasOperands& operands, bool fused) {
    const cudaDataType_t in = args.precision == Precision::bf16 ? CUDA_R_16BF : CUDA_R_32F;
    const cublasComputeType_t compute =
        args.precision == Precision::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    if (library_->cublasLtMatmulDescCreate(&plan.operation, compute, CUDA_R_32F) != CUBLAS_STATUS_SUCCESS) return false;
    // A matrix in its stated layout, read column-major, is already transposed.
    const cublasOperation_t for_b = args.b_turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t for_a = args.a_turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    if (!set(plan.operation, CUBLASLT_MATMUL_DESC_TRANSA, for_b)) return false;
    if (!set(plan.operation, CUBLASLT_MATMUL_DESC_TRANSB, for_a)) return false;
    if (fused && !set_epilogue(plan.operation, args)) return false;
    const auto layout = [&](cublasLtMatrixLayout_t* made, cudaDataType_t type, const MatrixLayout& shape,
                            std::uint64_t step) {
      return library_->cublasLtMatrixLayoutCreate(made, type, shape.columns, shape.rows, shape.stride) ==
                 CUBLAS_STATUS_SUCCESS &&
             (args.batch == 1 || set_batch(*made, args.batch, step));
    };
    return layout(&plan.a, in, layout_of_a(args), args.a_step) && layout(&plan.b, in, layout_of_b(args), args.b_step) &&
           layout(&plan.y, args.y.bf16 ? CUDA_R_16BF : CUDA_R_32F, layout_of_y(args), args.y_step) &&
           choose(plan, alignments(args, operands, fused ? args.y.at : operands.y));
  }

  bool set_batch(cublasLtMatrixLayout_t layout, std::uint32_t batch, std::uint64_t step) {
    const auto count = static_cast<std::int32_t>(batch);
    const auto apart = static_cast<std::int64_t>(step);
    const auto set = library_->cublasLtMatrixLayoutSetAttribute;
    return set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count) == CUBLAS_STATUS_SUCCESS &&
           set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &apart, sizeof apart) == CUBLAS_STATUS_SUCCESS;
  }

  bool choose(Plan& plan, const std::array<std::uint32_t, 3>& aligned) {
    cublasLtMatmulPreference_t preference = nullptr;
    if (library_->cublasLtMatmulPreferenceCreate(&preference) != CUBLAS_STATUS_SUCCESS) return false;
    constexpr std::uint32_t in_order = CUBLASLT_REDUCTION_SCHEME_MASK & ~CUBLASLT_REDUCTION_SCHEME_INPLACE;
    cublasLtMatmulHeuristicResult_t best = {};
    int found = 0;
    const bool asked = prefer(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes) &&
                       prefer(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, in_order) &&
                       prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, aligned[1]) &&
                       prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, aligned[0]) &&
                       prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, aligned[2]) &&
                       prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, aligned[2]) &&
                       library_->cublasLtMatmulAlgoGetHeuristic(handle_, plan.operation, plan.b, plan.a, plan.y, plan.y,
                                                                preference, 1, &best, &found) == CUBLAS_STATUS_SUCCESS;
    library_->cublasLtMatmulPreferenceDestroy(preference);
    plan.algorithm = best.algo;
    return asked && found > 0 && best.state == CUBLAS_STATUS_SUCCESS;
  }

  void destroy(Plan& plan) {
    for (const cublasLtMatrixLayout_t layout : {plan.a, plan.b, plan.y})
      if (layout != nullptr) library_->cublasLtMatrixLayoutDestroy(layout);
    if (plan.operation != nullptr) library_->cublasLtMatmulDescDestroy(plan.operation);
  }

  const BlasLibrary* library_ = nullptr;
  cublasLtHandle_t handle_ = nullptr;
  std::map<Key, Plan> plans_;
};

#else

class Blas {
 public:
  Status product(const MatmulArgs&, BlasOperands, void*, cudaStream_t, bool*, ErrorText* error) {
    return blas_error(error, Status::failed, "this build has no matrix products: cublasLt.h was not there",
                      "install cuBLAS's headers and build again");
  }
  static constexpr std::size_t workspace_bytes = 0;
};

#endif

}  // namespace rumor::gpu
