#include "gpu/device/clip.h"

#include <cmath>

#include "runtime/base/check.h"

namespace rumor::gpu {

DeviceClip::DeviceClip(const Gpu& gpu, double norm_max) : gpu_(&gpu), norm_max_(norm_max) {
  RUMOR_CHECK(norm_max > 0);
}

Result<double> DeviceClip::cut(const DeviceArray<float>& gradient, std::size_t count) {
  RUMOR_CHECK(gradient.size() >= count);
  for (Result<void> room : {partial_.make_room(*gpu_, square_partials(count), "a norm"),
                            total_.make_room(*gpu_, 1, "a norm")})
    if (!room) return room.error();
  const ModelTable& model = gpu_->table().model;
  model.square_sum(gpu_->device(), count, gradient.data(), partial_.data(), total_.data());
  double squares = 0;
  if (auto read = total_.read(&squares, 1); !read) return read.error();
  const double norm = std::sqrt(squares), share = norm_max_ / (norm + 1e-6);
  if (share < 1 && std::isfinite(norm))
    model.scale(gpu_->device(), count, static_cast<float>(share), gradient.data());
  return norm;
}

}  // namespace rumor::gpu
