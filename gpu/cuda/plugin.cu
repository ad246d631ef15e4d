// The plugin: devices, memory and errors by the CUDA runtime, products by cuBLASLt, groups by NCCL, and the kernels of
// the table.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "gpu/cuda/libraries/blas.cuh"
#include "gpu/cuda/libraries/nccl.cuh"
#include "gpu/device/table.h"

namespace rumor::gpu {

// Device memory that grows on demand; growing loses the contents.
struct Scratch {
  void* memory = nullptr;
  std::size_t bytes = 0;
  unsigned moves = 0;  // how often its address changed

  ~Scratch() { static_cast<void>(cudaFree(memory)); }
  // Returns false if there is not enough memory.
  bool make_room(std::size_t wanted) {
    if (wanted <= bytes) return true;
    static_cast<void>(cudaFree(memory));  // waits for the work that uses it
    memory = nullptr;
    bytes = 0;
    ++moves;
    const bool made = cudaMalloc(&memory, wanted) == cudaSuccess;
    if (made) bytes = wanted;
    static_cast<void>(cudaGetLastError());
    return made;
  }
};

struct Device {
  int ordinal = 0;
  cudaStream_t stream = nullptr;
  cudaError_t failure = cudaSuccess;    // the first failure
  bool recording = false;               // a failure then is no failure of the device
  cudaError_t unwritten = cudaSuccess;  // the first failure of a recording
  Blas blas;
  Scratch blas_scratch, rounded_a, rounded_b;

  // Notes a failure; everything after it may be wrong, so the next wait reports it.
  void note(cudaError_t result) {
    cudaError_t& first = recording ? unwritten : failure;
    if (result != cudaSuccess && first == cudaSuccess) first = result;
  }
  // Makes this GPU current for the calling thread's next calls.
  void enter() { note(cudaSetDevice(ordinal)); }
  unsigned moves() const { return blas_scratch.moves + rounded_a.moves + rounded_b.moves; }
};

struct Recording {
  Device* device = nullptr;
  cudaGraphExec_t graph = nullptr;
  unsigned moves = 0;  // of the device's scratch memory, at the time of recording
};

struct Group {
  const Nccl* nccl = nullptr;
  std::vector<Device*> devices;
  std::vector<Nccl::Comm> comms;
};

template <class... Params, class... Args>
void launch(Device& device, void (*kernel)(Params...), std::uint64_t blocks, unsigned threads, Args... args) {
  device.enter();
  kernel<<<static_cast<unsigned>(blocks), threads, 0, device.stream>>>(static_cast<Params>(args)...);
  device.note(cudaGetLastError());
}

inline void fill_bytes(Device& device, void* to, int byte, std::size_t bytes) {
  device.enter();
  device.note(cudaMemsetAsync(to, byte, bytes, device.stream));
}

}  // namespace rumor::gpu

#include "gpu/cuda/slots.cuh"

namespace rumor::gpu {
namespace {

Status fail(ErrorText* error, Status status, const char* what, const char* remedy) {
  std::snprintf(error->text, sizeof error->text, "%s%s%s", what, remedy[0] != '\0' ? "; " : "", remedy);
  return status;
}

// Translates a result of the CUDA runtime into a status and an error text for the user.
Status status_of(cudaError_t result, ErrorText* error) {
  switch (result) {
    case cudaSuccess:
      return Status::ok;
    case cudaErrorInsufficientDriver: {
      int driver = 0, runtime = 0;
      if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
        return fail(error, Status::no_driver, "no NVIDIA driver is loaded", "install it, or use --device cpu");
      static_cast<void>(cudaRuntimeGetVersion(&runtime));
      char text[160];
      std::snprintf(text, sizeof text, "the NVIDIA driver knows CUDA %d.%d and this build needs %d.%d", driver / 1000,
                    driver / 10 % 100, runtime / 1000, runtime / 10 % 100);
      return fail(error, Status::driver_too_old, text, "update the driver, or use --device cpu");
    }
    case cudaErrorNoDevice:
      return fail(error, Status::no_device, "the NVIDIA driver finds no GPU", "use --device cpu");
    case cudaErrorInvalidDevice:
      return fail(error, Status::no_device, "there is no GPU of this number", "");
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidPtx:
    case cudaErrorUnsupportedPtxVersion:
      return fail(error, Status::no_architecture, "this build has no code for this GPU",
                  "build it with its architecture in -Dgpu_arch");
    case cudaErrorMemoryAllocation:
      return fail(error, Status::out_of_memory, "the GPU has too little free memory",
                  "use a smaller model or batch, or end what else runs on it");
    default:
      return fail(error, Status::failed, cudaGetErrorString(result), "");
  }
}

}  // namespace

Status machine::count(int* devices, ErrorText* error) {
  *devices = 0;
  const cudaError_t result = cudaGetDeviceCount(devices);
  static_cast<void>(cudaGetLastError());  // clears the error, which is reported here
  return status_of(result, error);
}

Status machine::open(int ordinal, bool urgent, Device** device, ErrorText* error) {
  *device = nullptr;
  auto* opened = new Device;
  opened->ordinal = ordinal;
  opened->note(cudaSetDevice(ordinal));
  int last = 0, first = 0;  // priorities
  if (opened->failure == cudaSuccess) opened->note(cudaDeviceGetStreamPriorityRange(&last, &first));
  if (opened->failure == cudaSuccess)
    opened->note(cudaStreamCreateWithPriority(&opened->stream, cudaStreamNonBlocking, urgent ? first : last));
  // Whether there is code for this GPU shows only when a kernel is requested.
  cudaFuncAttributes attributes;
  if (opened->failure == cudaSuccess) opened->note(cudaFuncGetAttributes(&attributes, begin_scan));
  static_cast<void>(cudaGetLastError());
  if (opened->failure == cudaSuccess) {
    *device = opened;
    return Status::ok;
  }
  const Status status = status_of(opened->failure, error);
  if (opened->stream != nullptr) static_cast<void>(cudaStreamDestroy(opened->stream));
  delete opened;
  return status;
}

void machine::close(Device* device) {
  static_cast<void>(cudaSetDevice(device->ordinal));
  static_cast<void>(cudaStreamSynchronize(device->stream));
  static_cast<void>(cudaStreamDestroy(device->stream));
  delete device;
}

Status machine::describe(Device* device, DeviceInfo* info, ErrorText* error) {
  cudaDeviceProp properties;
  std::size_t free_bytes = 0, all_bytes = 0;
  device->enter();
  device->note(cudaGetDeviceProperties(&properties, device->ordinal));
  device->note(cudaMemGetInfo(&free_bytes, &all_bytes));
  if (device->failure != cudaSuccess) return status_of(device->failure, error);
  std::snprintf(info->name, sizeof info->name, "%.127s", properties.name);
  info->major = properties.major;
  info->minor = properties.minor;
  info->memory_bytes = all_bytes;
  info->free_bytes = free_bytes;
  return Status::ok;
}

void* machine::allocate(Device* device, std::size_t bytes) {
  void* memory = nullptr;
  device->enter();
  const cudaError_t result = cudaMalloc(&memory, bytes == 0 ? 1 : bytes);
  if (result == cudaSuccess) return memory;
  static_cast<void>(cudaGetLastError());
  if (result != cudaErrorMemoryAllocation) device->note(result);  // too little memory leaves a device usable
  return nullptr;
}

// The stream may still use the memory; cudaFree waits for it.
void machine::release(Device* device, void* memory) {
  device->enter();
  device->note(cudaFree(memory));
}

// For pageable memory, the runtime has copied the bytes when it returns.
void machine::copy_in(Device* device, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  device->enter();
  device->note(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, device->stream));
}

void machine::copy_within(Device* device, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  device->enter();
  device->note(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, device->stream));
}

Status machine::wait(Device* device, ErrorText* error) {
  device->enter();
  device->note(cudaStreamSynchronize(device->stream));
  return status_of(device->failure, error);
}

Status machine::copy_out(Device* device, void* to, const void* from, std::size_t bytes, ErrorText* error) {
  device->enter();
  if (bytes != 0) device->note(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, device->stream));
  return wait(device, error);
}

// Other threads of the program may call CUDA meanwhile.
Status machine::begin_recording(Device* device, ErrorText* error) {
  device->enter();
  const cudaError_t begun = cudaStreamBeginCapture(device->stream, cudaStreamCaptureModeThreadLocal);
  if (begun != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return fail(error, Status::failed, cudaGetErrorString(begun), "");
  }
  device->recording = true;
  device->unwritten = cudaSuccess;
  return Status::ok;
}

Status machine::end_recording(Device* device, Recording** recording, ErrorText* error) {
  *recording = nullptr;
  device->enter();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  device->note(cudaStreamEndCapture(device->stream, &graph));
  if (device->unwritten == cudaSuccess) device->note(cudaGraphInstantiateWithFlags(&ready, graph, 0));
  if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
  device->recording = false;
  if (device->unwritten == cudaSuccess) {
    *recording = new Recording{device, ready, device->moves()};
    return Status::ok;
  }
  static_cast<void>(cudaGetLastError());
  return fail(error, Status::failed, cudaGetErrorString(device->unwritten), "");
}

bool machine::repeat(Device* device, Recording* recording) {
  if (recording->moves != device->moves()) return false;
  device->enter();
  device->note(cudaGraphLaunch(recording->graph, device->stream));
  return true;
}

// The recording may still be running.
void machine::forget(Recording* recording) {
  recording->device->enter();
  recording->device->note(cudaStreamSynchronize(recording->device->stream));
  static_cast<void>(cudaGraphExecDestroy(recording->graph));
  delete recording;
}

Status machine::join(Device* const* devices, int count, Group** group, ErrorText* error) {
  *group = nullptr;
  const Nccl* nccl = nullptr;
  if (const Status opened = Nccl::open(&nccl, error); opened != Status::ok || count == 0) return opened;
  Group made;
  made.nccl = nccl;
  made.devices.assign(devices, devices + count);
  made.comms.resize(made.devices.size());
  std::vector<int> ordinals;
  for (const Device* device : made.devices) ordinals.push_back(device->ordinal);
  const Status status = nccl->said(nccl->init_all(made.comms.data(), count, ordinals.data()), error);
  if (status == Status::ok) *group = new Group(made);
  return status;
}

void machine::part(Group* group) {
  for (std::size_t d = 0; d < group->devices.size(); ++d) {
    group->devices[d]->enter();
    static_cast<void>(cudaStreamSynchronize(group->devices[d]->stream));
    static_cast<void>(group->nccl->destroy(group->comms[d]));
  }
  delete group;
}

namespace {

// One thread begins every GPU's part inside one NCCL group, so that NCCL knows of all parts before it waits for any.
template <class Begin>  // begin(number of the device) -> result of NCCL
Status together(Group* group, ErrorText* error, const Begin& begin) {
  int result = group->nccl->group_start();
  for (std::size_t d = 0; d < group->devices.size() && result == Nccl::success; ++d) {
    group->devices[d]->enter();
    result = begin(d);
  }
  const int ended = group->nccl->group_end();
  return group->nccl->said(result != Nccl::success ? result : ended, error);
}

}  // namespace

Status machine::reduce(Group* group, float* const* values, std::uint64_t count, ErrorText* error) {
  return together(group, error, [&](std::size_t d) {
    return group->nccl->reduce(values[d], values[d], count, Nccl::float_type, Nccl::sum, 0, group->comms[d],
                               group->devices[d]->stream);
  });
}

Status machine::spread(Group* group, void* const* memory, std::size_t bytes, ErrorText* error) {
  return together(group, error, [&](std::size_t d) {
    return group->nccl->broadcast(memory[d], memory[d], bytes, Nccl::bytes_type, 0, group->comms[d],
                                  group->devices[d]->stream);
  });
}

Status machine::product(Device* device, const MatmulArgs* args, bool* finished, ErrorText* error) {
  const auto no_room = [&] {
    return blas_error(error, Status::out_of_memory, "the GPU has too little free memory for a matrix product",
                      "use a smaller model or batch, or end what else runs on it");
  };
  device->enter();
  if (!device->blas_scratch.make_room(Blas::workspace_bytes)) return no_room();
  BlasOperands operands = {args->a.at, args->b.at, slots::bare_product(*args).at};
  if (args->precision == Precision::bf16) {
    const auto rounded = [&](const void*& numbers, bool are_bf16, std::uint64_t count, Scratch& to) {
      if (are_bf16) return true;
      if (!to.make_room(count * sizeof(Bf16))) return false;
      slots::round(device, count, static_cast<const float*>(numbers), static_cast<Bf16*>(to.memory));
      numbers = to.memory;
      return true;
    };
    if (!rounded(operands.a, args->a.bf16, layout_of_a(*args).extent(args->batch, args->a_step),
                 device->rounded_a) ||
        !rounded(operands.b, args->b.bf16, layout_of_b(*args).extent(args->batch, args->b_step),
                 device->rounded_b))
      return no_room();
  }
  return device->blas.product(*args, operands, device->blas_scratch.memory, device->stream, finished, error);
}

}  // namespace rumor::gpu

extern "C" __attribute__((visibility("default"))) const rumor::gpu::GpuTable* rumor_gpu_table() {
  static const rumor::gpu::GpuTable table = rumor::gpu::make_table("cuda");
  return &table;
}
