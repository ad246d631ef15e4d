#include "gpu/compress/range_guard.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "compress/select/range_guard.h"
#include "compress/select/scan_pass.h"
#include "gpu/device/scan_form.h"
#include "runtime/base/check.h"

namespace rumor::gpu {

DeviceRangeGuard::DeviceRangeGuard(const Gpu& gpu, ParamLayout layout, int grid_bits)
    : gpu_(&gpu), layout_(std::move(layout)), unit_(std::ldexp(1.0f, -grid_bits)) {}

Result<std::vector<std::uint32_t>> DeviceRangeGuard::beyond(const DeviceArray<float>& view,
                                                            const DeviceUpdate& update) {
  RUMOR_CHECK(view.size() >= layout_.params());
  std::vector<std::uint32_t> none;
  if (update.count == 0) return none;
  if (auto gathered = gather(view, update); !gathered) return gathered.error();
  const auto near = any_near(update);
  if (!near) return near.error();
  if (!*near) return none;
  const auto here = update.read();
  if (!here) return here.error();
  std::vector<float> before(update.count);
  if (auto read = weights_.read(before.data(), before.size()); !read) return read.error();
  return compress::RangeGuard::beyond(layout_, *here, before, unit_);
}

Result<void> DeviceRangeGuard::gather(const DeviceArray<float>& view, const DeviceUpdate& update) {
  const std::size_t before = zeros_.size();
  for (Result<void> room :
       {weights_.make_room(*gpu_, update.count, "weights of an update"),
        zeros_.make_room(*gpu_, update.count, "weights of an update"),
        tiles_.make_room(*gpu_, scan_tiles_of(update.count), "weights of an update"),
        selection_.make_room(*gpu_, 1, "weights of an update")})
    if (!room) return room;
  const GpuTable& table = gpu_->table();
  if (zeros_.size() != before) table.fill(gpu_->device(), zeros_.data(), 0, zeros_.bytes());
  table.gather(gpu_->device(), reinterpret_cast<const std::uint32_t*>(view.data()), update.index.data(), update.count,
               reinterpret_cast<std::uint32_t*>(weights_.data()));
  return {};
}

// A scan that has room for no candidate and adds zeros: it counts.
Result<bool> DeviceRangeGuard::any_near(const DeviceUpdate& update) const {
  std::int32_t step = update.step;
  for (const std::int32_t of_tensor : update.tensor_step) step = std::max(step, of_tensor);
  const double safe = compress::RangeGuard::safe_below(step, unit_);
  if (!(safe > 0)) return true;
  ScanArgs args{};
  args.residual = weights_.data();
  args.change = zeros_.data();
  args.params = update.count;
  args.cutoff = compress::magnitude_bits(static_cast<float>(safe));
  args.tiles = tiles_.data();
  args.selection = selection_.data();
  args.form = Change::floats;
  gpu_->table().scan(gpu_->device(), &args);
  Selection found;
  if (auto read = selection_.read(&found, 1); !read) return read.error();
  return found.candidates > 0;
}

}  // namespace rumor::gpu
