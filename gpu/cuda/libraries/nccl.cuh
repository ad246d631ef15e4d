// NCCL, which is opened when several GPUs compute together. One GPU does not need it, and neither does a build.
//
// The few functions in use are declared here. They have not changed since NCCL 2.0, and NCCL's header comes neither
// with CUDA nor with the driver. If the header is installed, the build checks these declarations against it.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>

#include "gpu/device/table.h"

#if __has_include(<nccl.h>)
#include <nccl.h>
#define RUMOR_HAVE_NCCL_HEADER 1
#endif

namespace rumor::gpu {

struct Nccl {
  using Comm = void*;
  static constexpr int success = 0, bytes_type = 1, float_type = 7, sum = 0;

  int (*init_all)(Comm* comms, int count, const int* ordinals) = nullptr;
  int (*destroy)(Comm comm) = nullptr;
  int (*reduce)(const void* from, void* to, std::size_t count, int type, int operation, int root, Comm comm,
                cudaStream_t stream) = nullptr;
  int (*broadcast)(const void* from, void* to, std::size_t count, int type, int root, Comm comm,
                   cudaStream_t stream) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  const char* (*error_string)(int result) = nullptr;

  // Opens the library once for the process. Status::failed names what is missing.
  static Status open(const Nccl** library, ErrorText* error) {
    static Nccl opened;
    static const bool there = opened.load();
    *library = &opened;
    if (there) return Status::ok;
    std::snprintf(error->text, sizeof error->text, "%s; install NVIDIA's NCCL, or put its folder into LD_LIBRARY_PATH",
                  opened.missing_);
    return Status::failed;
  }

  Status said(int result, ErrorText* error) const {
    if (result == success) return Status::ok;
    std::snprintf(error->text, sizeof error->text, "NCCL says: %s", error_string(result));  // says how to get details
    return Status::failed;
  }

 private:
  bool load() {
    void* library = nullptr;
    for (const char* name : {"libnccl.so.2", "/usr/local/cuda/lib64/libnccl.so.2"})
      if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      std::snprintf(missing_, sizeof missing_, "that needs libnccl.so.2, which is not here");
      return false;
    }
    return find(library, "ncclCommInitAll", init_all) && find(library, "ncclCommDestroy", destroy) &&
           find(library, "ncclReduce", reduce) && find(library, "ncclBroadcast", broadcast) &&
           find(library, "ncclGroupStart", group_start) && find(library, "ncclGroupEnd", group_end) &&
           find(library, "ncclGetErrorString", error_string);
  }

  template <class Function>
  bool find(void* library, const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(library, name));
    if (function == nullptr) std::snprintf(missing_, sizeof missing_, "this libnccl.so.2 has no %s", name);
    return function != nullptr;
  }

  char missing_[96] = {};
};

#if defined(RUMOR_HAVE_NCCL_HEADER)
static_assert(ncclSuccess == Nccl::success && ncclUint8 == Nccl::bytes_type && ncclFloat32 == Nccl::float_type &&
                  ncclSum == Nccl::sum && sizeof(ncclComm_t) == sizeof(Nccl::Comm) &&
                  sizeof(ncclDataType_t) == sizeof(int) && sizeof(ncclRedOp_t) == sizeof(int),
              "nccl.h is of another NCCL than 2");
#endif

}  // namespace rumor::gpu
