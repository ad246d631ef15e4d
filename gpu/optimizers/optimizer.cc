#include "gpu/optimizers/optimizer.h"

#include <bit>
#include <limits>
#include <utility>

#include "gpu/device/scan_form.h"

namespace rumor::gpu {

namespace {

std::uint64_t address_of(const float* array) { return reinterpret_cast<std::uintptr_t>(array); }

}  // namespace

Result<DeviceOptimizer> DeviceOptimizer::create(const Gpu& gpu, models::Optimizer& optimizer, Precision precision) {
  DeviceOptimizer made(gpu, optimizer);
  if (auto taken = made.take_moments(); !taken) return taken.error();
  if (optimizer.has_rule()) return made;
  made.groups_ = groups_of(optimizer.matrices(), precision);
  std::vector<MatrixGroup> groups;
  for (const PlacedGroup& placed : made.groups_) groups.push_back(placed.group);
  auto newton_schulz = DeviceNewtonSchulz::create(gpu, precision, groups);
  if (!newton_schulz) return newton_schulz.error();
  made.newton_schulz_.emplace(std::move(newton_schulz).value());
  return made;
}

Result<void> DeviceOptimizer::take_moments() {
  for (const LargeVector<float>& here : optimizer_->moments()) {
    auto there = DeviceArray<float>::create(*gpu_, here.size(), "moments of the optimizer");
    if (!there) return there.error();
    there->write(here.data(), here.size());
    moments_.push_back(std::move(there).value());
  }
  return {};
}

StepRule DeviceOptimizer::begin_step(double rate, const DeviceArray<float>& weights) const {
  StepRule rule = optimizer_->begin_step(rate, {weights.data(), optimizer_->params()});
  const std::span<LargeVector<float>> here = optimizer_->moments();
  for (float** moment : {&rule.first, &rule.second, &rule.last})
    for (std::size_t i = 0; i < here.size(); ++i)
      if (*moment == here[i].data()) {
        *moment = moments_[i].data();
        break;
      }
  return rule;
}

Result<void> DeviceOptimizer::add_step(const DeviceArray<float>& gradient, double rate,
                                       const DeviceArray<float>& weights, const DeviceArray<float>& change) {
  const std::uint32_t params = optimizer_->params();
  for (Result<void> room : {tiles_.make_room(*gpu_, scan_tiles_of(params), "a step"),
                            selection_.make_room(*gpu_, 1, "a step")})
    if (!room) return room;
  const Arrays arrays{gradient.data(), weights.data(), change.data()};
  if (has_rule()) {
    const StepRule rule = begin_step(rate, weights);
    add(form_of(rule.kind), rule, 0, params, arrays);
    return {};
  }
  const models::MatrixStep step = optimizer_->begin_matrix_step(rate);
  const Repeated::Key key{address_of(gradient.data()), address_of(moments_[0].data()), 0, 0};
  const auto begin = [&] { return find_directions(step.momentum, gradient.data()); };
  if (auto found = directions_.run(key, begin); !found) return found;
  add_matrix_step(step, arrays);
  return {};
}

// Each hidden matrix of the gradient becomes the direction in which the weights are to move.
Result<void> DeviceOptimizer::find_directions(float momentum, float* gradient) {
  for (const auto& [offset, group] : groups_) {
    gpu_->table().optimizers.look_ahead(gpu_->device(), group, momentum, gradient + offset,
                                        moments_[0].data() + offset);
    if (auto found = newton_schulz_->orthogonalise(group, gradient + offset); !found) return found;
  }
  return {};
}

// Matrices side by side have one size, so one rule is for all of them.
void DeviceOptimizer::add_matrix_step(const models::MatrixStep& step, const Arrays& arrays) {
  std::uint32_t done = 0;
  for (const models::HiddenMatrix& matrix : step.matrices) {
    if (matrix.offset < done) continue;  // beside the last one
    done = matrix.offset + matrix.rows * matrix.stride;
    add(Change::sgdw, step.of(matrix), matrix.offset, done, arrays);
  }
  for (const models::MatrixStep::Stretch& stretch : step.stretches) {
    StepRule rule = step.others;
    rule.first = moments_[0].data() + stretch.begin;
    rule.second = moments_[1].data() + stretch.second;
    add(Change::adamw, rule, stretch.begin, stretch.end, arrays);
  }
}

// Adds the step of parameters `begin` up to `end`; the moments of `rule` begin with that of the first of them.
void DeviceOptimizer::add(Change form, const StepRule& rule, std::uint32_t begin, std::uint32_t end,
                          const Arrays& arrays) {
  ScanArgs args{};
  args.residual = arrays.change + begin;
  args.change = arrays.gradient + begin;
  args.params = end - begin;
  args.cutoff = std::bit_cast<std::uint32_t>(std::numeric_limits<float>::infinity());
  args.tiles = tiles_.data();
  args.selection = selection_.data();
  args.form = form;
  args.rule = rule;
  args.rule.weights = arrays.weights + begin;
  gpu_->table().scan(gpu_->device(), &args);
}

Bytes DeviceOptimizer::save() const {
  const std::span<LargeVector<float>> here = optimizer_->moments();
  for (std::size_t i = 0; i < here.size(); ++i)
    if (!moments_[i].read(here[i].data(), here[i].size())) break;
  return optimizer_->save();
}

Result<void> DeviceOptimizer::load(BytesView state) {
  if (auto loaded = optimizer_->load(state); !loaded) return loaded;
  const std::span<LargeVector<float>> here = optimizer_->moments();
  for (std::size_t i = 0; i < here.size(); ++i) moments_[i].write(here[i].data(), here[i].size());
  return {};
}

std::size_t DeviceOptimizer::memory_bytes() const {
  std::size_t bytes = device_bytes(tiles_, selection_) + (newton_schulz_ ? newton_schulz_->memory_bytes() : 0);
  for (const DeviceArray<float>& moment : moments_) bytes += moment.bytes();
  return bytes;
}

}  // namespace rumor::gpu
