#include "gpu/device/device.h"

#include "runtime/base/text.h"

namespace rumor::gpu {

Result<std::unique_ptr<Gpu>> Gpu::open(const GpuTable& table, int ordinal) { return open(table, ordinal, false); }

Result<std::unique_ptr<Gpu>> Gpu::open(const GpuTable& table, int ordinal, bool urgent) {
  ErrorText error{};
  int devices = 0;
  if (table.count(&devices, &error) != Status::ok) return Error{Errc::io, str("no GPU can be used: ", error.text)};
  if (ordinal < 0 || ordinal >= devices)
    return Error{Errc::io, str("there is no GPU ", ordinal, "; this machine has ", devices, ", counted from 0")};
  Device* device = nullptr;
  if (table.open(ordinal, urgent, &device, &error) != Status::ok)
    return Error{Errc::io, str("GPU ", ordinal, " cannot be used: ", error.text)};
  return std::unique_ptr<Gpu>(new Gpu(table, ordinal, device));
}

Result<void> Gpu::copy_out(void* to, const void* from, std::size_t bytes) const {
  ErrorText error{};
  if (table_.copy_out(device_, to, from, bytes, &error) == Status::ok) return {};
  return Error{Errc::io, str("the GPU failed: ", error.text)};
}

Result<void> Gpu::wait() const {
  ErrorText error{};
  if (table_.wait(device_, &error) == Status::ok) return {};
  return Error{Errc::io, str("the GPU failed: ", error.text)};
}

Result<DeviceInfo> Gpu::describe() const {
  ErrorText error{};
  DeviceInfo info{};
  if (table_.describe(device_, &info, &error) == Status::ok) return info;
  return Error{Errc::io, str("the GPU failed: ", error.text)};
}

Result<void> Gpu::matmul(const MatmulArgs& args) const {
  ErrorText error{};
  const Status status = table_.model.matmul(device_, &args, &error);
  if (status == Status::ok) return {};
  return Error{status == Status::out_of_memory ? Errc::limit : Errc::io, error.text};
}

Error Gpu::too_little_memory(const char* what, std::size_t bytes) const {
  const Result<DeviceInfo> info = describe();
  const std::string left =
      info ? str("; of ", info->memory_bytes >> 20, " MiB, ", info->free_bytes >> 20, " are free") : std::string{};
  return Error{Errc::limit, str("the GPU has no memory left for ", (bytes + (1 << 20) - 1) >> 20, " MiB of ", what,
                                left, "; use a smaller model, batch or density, or end what else runs on it")};
}

}  // namespace rumor::gpu
