#include "gpu/device/group.h"

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::gpu {

Result<std::unique_ptr<GpuGroup>> GpuGroup::open(const GpuTable& table, std::span<const int> ordinals) {
  if (ordinals.empty()) return Error{Errc::usage, "no GPU is named"};
  for (auto one = ordinals.begin(); one != ordinals.end(); ++one)
    if (std::find(ordinals.begin(), one, *one) != one)
      return Error{Errc::usage,
                   str("GPU ", *one, " is named twice; each takes a part of every batch, so name it once")};
  std::unique_ptr<GpuGroup> group(new GpuGroup);
  for (const int ordinal : ordinals) {
    auto gpu = Gpu::open(table, ordinal);
    if (!gpu) return gpu.error();
    group->gpus_.push_back(std::move(gpu).value());
  }
  if (auto joined = group->join(); !joined) return joined.error();
  return group;
}

Result<void> GpuGroup::join() {
  if (size() == 1) return {};
  std::vector<Device*> devices;
  for (const auto& gpu : gpus_) devices.push_back(gpu->device());
  ErrorText error{};
  if (first().table().join(devices.data(), static_cast<int>(devices.size()), &joined_, &error) == Status::ok) return {};
  return Error{Errc::io, str(size(), " GPUs cannot work together: ", error.text, "; or name a single one")};
}

GpuGroup::~GpuGroup() {
  if (joined_ != nullptr) first().table().part(joined_);
}

Result<std::string> GpuGroup::name() const {
  std::vector<std::string> names;
  for (const auto& gpu : gpus_) {
    const auto info = gpu->describe();
    if (!info) return info.error();
    names.emplace_back(info->name);
  }
  if (size() > 1 && std::count(names.begin(), names.end(), names.front()) == static_cast<long>(size()))
    return str(size(), " x ", names.front());
  std::string all = names.front();
  for (std::size_t i = 1; i < names.size(); ++i) all += " + " + names[i];
  return all;
}

Result<void> GpuGroup::add_up(std::span<float* const> values, std::uint64_t count) const {
  RUMOR_CHECK(values.size() == size());
  ErrorText error{};
  if (size() == 1 || first().table().reduce(joined_, values.data(), count, &error) == Status::ok) return {};
  return Error{Errc::io, str("the GPUs cannot add up a gradient: ", error.text)};
}

Result<void> GpuGroup::spread(std::span<void* const> memory, std::size_t bytes) const {
  RUMOR_CHECK(memory.size() == size());
  ErrorText error{};
  if (size() == 1 || first().table().spread(joined_, memory.data(), bytes, &error) == Status::ok) return {};
  return Error{Errc::io, str("the GPUs cannot hand weights on: ", error.text)};
}

}  // namespace rumor::gpu
