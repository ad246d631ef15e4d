#include "gpu/models/split_model.h"

#include <utility>

#include "runtime/base/check.h"

namespace rumor::gpu {

std::vector<models::Batch> split_batch(const models::Batch& batch, std::size_t parts) {
  RUMOR_CHECK(batch.rows > 0 && parts > 0);
  std::vector<models::Batch> pieces(parts);
  std::size_t first = 0;
  for (std::size_t i = 0; i < parts; ++i) {
    const std::size_t rows = batch.rows / parts + (i < batch.rows % parts ? 1 : 0);
    const auto part_of = [&](auto all) {
      const std::size_t each = all.size() / batch.rows;
      return all.subspan(first * each, rows * each);
    };
    pieces[i].x = part_of(batch.x);
    pieces[i].label = part_of(batch.label);
    pieces[i].tokens = part_of(batch.tokens);
    pieces[i].soft = {part_of(batch.soft.probability), batch.soft.weight};
    pieces[i].rows = static_cast<std::uint32_t>(rows);
    first += rows;
  }
  return pieces;
}

Result<SplitModel> SplitModel::create(const GpuGroup& gpus, const models::ModelConfig& config, Precision precision) {
  SplitModel made(gpus);
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    auto model = make_device_model(gpus[i], config, precision);
    if (!model) return model.error();
    Part part{std::move(model).value(), {}, {}, {}, {}, Repeated(gpus[i])};
    const std::uint32_t params = part.model->layout().params();
    if (i > 0)
      for (Result<void> room : {part.params.make_room(gpus[i], params, "weights"),
                                part.gradient.make_room(gpus[i], params, "gradient")})
        if (!room) return room.error();
    made.parts_.push_back(std::move(part));
  }
  return made;
}

Result<void> SplitModel::follow(const DeviceArray<float>& params) const {
  std::vector<void*> memory{params.data()};
  for (std::size_t i = 1; i < parts_.size(); ++i) memory.push_back(parts_[i].params.data());
  return gpus_->spread(memory, parts_.front().model->layout().params() * sizeof(float));
}

// The first GPU gathers the values, because it has the right ones.
Result<void> SplitModel::follow_at(const DeviceArray<std::uint32_t>& place, std::uint64_t count,
                                   const DeviceArray<float>& params) {
  if (parts_.size() == 1 || count == 0) return {};
  const auto entries = static_cast<std::uint32_t>(count);
  std::vector<void*> places, values;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    if (auto room = part.value.make_room((*gpus_)[i], count, "updates"); !room) return room;
    if (i > 0)
      if (auto room = part.place.make_room((*gpus_)[i], count, "updates"); !room) return room;
    places.push_back((i == 0 ? place : part.place).data());
    values.push_back(part.value.data());
  }
  const Gpu& first = gpus_->first();
  first.table().gather(first.device(), reinterpret_cast<const std::uint32_t*>(params.data()), place.data(), entries,
                       reinterpret_cast<std::uint32_t*>(values.front()));
  for (Result<void> spread :
       {gpus_->spread(places, count * sizeof(std::uint32_t)), gpus_->spread(values, count * sizeof(float))})
    if (!spread) return spread;
  for (std::size_t i = 1; i < parts_.size(); ++i) {
    const Gpu& gpu = (*gpus_)[i];
    gpu.table().put(gpu.device(), parts_[i].place.data(), parts_[i].value.data(), entries, parts_[i].params.data());
  }
  return {};
}

// Sends to all parts before any part begins: an error of one part then costs no computing on the others.
Result<void> SplitModel::send(const std::vector<models::Batch>& pieces, std::uint32_t all_rows) {
  for (std::size_t i = 0; i < parts_.size() && pieces[i].rows > 0; ++i)
    if (auto sent = parts_[i].model->send(pieces[i], all_rows); !sent) return sent;
  return {};
}

// Begins the passes of part i, or fills its gradient with zeros if it has no rows.
Result<void> SplitModel::compute(std::size_t i, std::uint32_t rows, std::uint32_t all_rows,
                                 const DeviceArray<float>& params, const DeviceArray<float>& gradient) {
  const Gpu& gpu = (*gpus_)[i];
  Part& part = parts_[i];
  if (rows == 0) {
    gpu.table().fill(gpu.device(), gradient.data(), 0, gradient.bytes());
    return {};
  }
  const auto address = [](const DeviceArray<float>& array) { return reinterpret_cast<std::uintptr_t>(array.data()); };
  const Repeated::Key key{all_rows, address(params), address(gradient), part.model->memory_bytes()};
  return part.step.run(key, [&] { return part.model->compute(params, gradient); });
}

Result<float> SplitModel::loss(const std::vector<models::Batch>& pieces) {
  float sum = 0;
  for (std::size_t i = 0; i < parts_.size() && pieces[i].rows > 0; ++i) {
    const Result<float> part = parts_[i].model->loss();
    if (!part) return part.error();
    sum += *part;
  }
  return sum;
}

Result<float> SplitModel::loss_and_gradient(const DeviceArray<float>& params, const models::Batch& batch,
                                            const DeviceArray<float>& gradient) {
  const std::vector<models::Batch> pieces = split_batch(batch, parts_.size());
  if (auto sent = send(pieces, batch.rows); !sent) return sent.error();
  std::vector<float*> gradients;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const DeviceArray<float>& own = i == 0 ? gradient : parts_[i].gradient;
    const auto begun = compute(i, pieces[i].rows, batch.rows, i == 0 ? params : parts_[i].params, own);
    if (!begun) return begun.error();
    gradients.push_back(own.data());
  }
  if (auto added = gpus_->add_up(gradients, parts_.front().model->layout().params()); !added) return added.error();
  return loss(pieces);  // until here the host has not waited
}

Result<models::Evaluation> SplitModel::evaluate(const DeviceArray<float>& params, const models::Batch& batch) {
  return parts_.front().model->evaluate(params, batch);
}

template <class Of>
std::uint64_t SplitModel::sum(Of of) const {
  std::uint64_t all = 0;
  for (const Part& part : parts_) all += of(part);
  return all;
}

std::uint64_t SplitModel::repeats() const {
  return sum([](const Part& part) { return part.step.repeats(); });
}

std::size_t SplitModel::activation_bytes() const {
  return sum([](const Part& part) { return part.model->memory_bytes(); });
}

std::size_t SplitModel::copy_bytes() const {
  return sum([](const Part& part) { return part.params.bytes(); });
}

std::size_t SplitModel::gradient_bytes() const {
  return sum([](const Part& part) { return part.gradient.bytes(); });
}

std::size_t SplitModel::entry_bytes() const {
  return sum([](const Part& part) { return device_bytes(part.place, part.value); });
}

}  // namespace rumor::gpu
