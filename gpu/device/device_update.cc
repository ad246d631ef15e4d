#include "gpu/device/device_update.h"

#include "runtime/base/check.h"

namespace rumor::gpu {

Result<void> DeviceUpdate::make_room(const Gpu& gpu, std::size_t entries) {
  if (Result<void> made = index.make_room(gpu, entries, "positions of an update"); !made) return made;
  return negative.make_room(gpu, entries, "signs of an update");
}

Result<void> DeviceUpdate::write_entries(const Gpu& gpu, const compress::SparseUpdate& update) {
  clear();
  if (Result<void> made = make_room(gpu, update.index.size()); !made) return made;
  index.write(update.index.data(), update.index.size());
  negative.write(update.negative.data(), update.negative.size());
  count = static_cast<std::uint32_t>(update.index.size());
  return {};
}

Result<void> DeviceUpdate::copy_entries(const Gpu& gpu, const DeviceUpdate& from) {
  clear();
  if (Result<void> made = make_room(gpu, from.count); !made) return made;
  const auto copy = [&](const auto& to, const auto& array) {
    gpu.table().copy_within(gpu.device(), to.data(), array.data(), from.count * sizeof *array.data());
  };
  copy(index, from.index);
  copy(negative, from.negative);
  count = from.count;
  return {};
}

Result<compress::SparseUpdate> DeviceUpdate::read() const {
  compress::SparseUpdate here;
  here.step = step;
  here.tensor_step = tensor_step;
  here.index.resize(count);
  here.negative.resize(count);
  if (auto read = index.read(here.index.data(), count); !read) return read.error();
  if (auto read = negative.read(here.negative.data(), count); !read) return read.error();
  return here;
}

Result<void> DeviceUpdate::set_steps(const Gpu& gpu) {
  std::vector<StepSpan> spans;
  if (tensor_step.empty()) {
    if (count > 0) spans.push_back({0, static_cast<std::uint32_t>(step)});
  } else {
    RUMOR_CHECK(tensor_step.size() == counts.size());
    std::uint64_t first = 0;
    for (std::size_t t = 0; t < counts.size(); first += counts[t++])
      if (counts[t] > 0) spans.push_back({first, static_cast<std::uint32_t>(tensor_step[t])});
  }
  if (Result<void> made = steps.make_room(gpu, spans.size(), "steps of an update"); !made) return made;
  steps.write(spans.data(), spans.size());
  step_count = static_cast<std::uint32_t>(spans.size());
  return {};
}

void DeviceUpdate::clear() {
  count = step_count = 0;
  step = 0;
  tensor_step.clear();
  counts.clear();
}

Result<TensorCounter> TensorCounter::create(const Gpu& gpu, const ParamLayout& layout) {
  TensorCounter counter;
  counter.gpu_ = &gpu;
  std::vector<std::uint32_t> edges;
  for (const TensorInfo& tensor : layout.tensors()) edges.push_back(tensor.offset + tensor.size);
  if (Result<void> made = counter.edges_.make_room(gpu, edges.size(), "a layout"); !made) return made.error();
  if (Result<void> made = counter.below_.make_room(gpu, edges.size(), "a layout"); !made) return made.error();
  counter.edges_.write(edges.data(), edges.size());
  return counter;
}

Result<void> TensorCounter::count(DeviceUpdate& update) const {
  const std::size_t tensors = edges_.size();
  update.counts.resize(tensors);
  gpu_->table().count_below(gpu_->device(), update.index.data(), update.count, edges_.data(),
                            static_cast<std::uint32_t>(tensors), below_.data());
  if (Result<void> read = below_.read(update.counts.data(), tensors); !read) return read;
  for (std::size_t t = tensors; --t > 0;) update.counts[t] -= update.counts[t - 1];
  return {};
}

}  // namespace rumor::gpu
