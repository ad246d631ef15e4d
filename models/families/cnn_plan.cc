#include "models/families/cnn_plan.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "models/layers/dense.h"
#include "models/layers/pool.h"
#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::models {
namespace {

using Kind = CnnStep::Kind;

// Puts steps one after another; `module` counts as nn.Sequential does. Keeps those of the part.
class Builder {
 public:
  Builder(PictureShape picture, std::uint32_t groups, ModelPart part) : groups_(groups), part_(part) {
    add_map(picture);
  }

  // The next step begins a unit.
  void unit() {
    const PictureShape border = shape();
    if (unit_ == part_.end) kept_ = std::move(plan_);
    if (unit_ == part_.begin || unit_ == part_.end) {
      plan_ = {};
      add_map(border);
    }
    ++unit_;
  }

  void convolution(std::uint32_t out, const std::string& name, bool has_bias) {
    CnnStep step{.kind = Kind::convolution, .from = last(), .layer = count(plan_.convolutions)};
    step.tensor = count(plan_.tensors);
    step.has_bias = has_bias;
    plan_.convolutions.emplace_back(shape(), out);
    plan_.tensors.push_back({name + ".weight", {out, shape().channels, 3, 3}});
    if (has_bias) plan_.tensors.push_back({name + ".bias", {out}});
    step.to = add_map(plan_.convolutions.back().output());
    plan_.steps.push_back(step);
  }
  void norm(const std::string& name) {
    CnnStep step{
        .kind = Kind::norm, .from = last(), .layer = count(plan_.norms), .tensor = count(plan_.tensors)};
    step.has_bias = true;
    plan_.norms.emplace_back(shape(), groups_);
    plan_.norm_saved_at.push_back(plan_.floats);
    plan_.floats += plan_.norms.back().saved();
    plan_.tensors.push_back({name + ".weight", {shape().channels}});
    plan_.tensors.push_back({name + ".bias", {shape().channels}});
    step.to = add_map(shape());
    plan_.steps.push_back(step);
  }
  void relu() { plan_.steps.push_back({.kind = Kind::relu, .from = last(), .to = last()}); }
  void pool(Kind kind) {
    const std::uint32_t from = last();
    const PictureShape to =
        kind == Kind::max_pool ? max_pooled(shape()) : PictureShape{1, 1, shape().channels};
    plan_.steps.push_back({.kind = kind, .from = from, .to = add_map(to)});
  }
  // To `side` x `side` pixels, if it has not that size.
  void stretch(std::uint32_t side) {
    const PictureShape now = shape();
    if (now.height == side) return;
    CnnStep step{.kind = Kind::stretch, .from = last(), .layer = count(plan_.area_means)};
    plan_.area_means.emplace_back(now.height, side);
    step.to = add_map({side, side, now.channels});
    plan_.steps.push_back(step);
  }
  void block(std::uint32_t out) {
    const std::uint32_t input = last();
    const std::string name = std::to_string(module_++);
    convolution(out, name + ".conv1", false);
    norm(name + ".norm1");
    relu();
    convolution(out, name + ".conv2", false);
    norm(name + ".norm2");
    plan_.steps.push_back({.kind = Kind::add, .from = input, .to = last()});
    relu();
  }
  std::string next_module() { return std::to_string(module_++); }
  PictureShape shape() const { return plan_.maps.back().shape; }

  void head(const std::vector<std::uint32_t>& hidden, std::uint32_t classes) {
    plan_.head = {static_cast<std::uint32_t>(shape().size())};
    plan_.head.insert(plan_.head.end(), hidden.begin(), hidden.end());
    plan_.head.push_back(classes);
  }

  CnnPlan finish() {
    RUMOR_CHECK(unit_ == part_.units);
    if (!part_.is_last()) plan_ = std::move(kept_);
    plan_.part = part_;
    plan_.body_tensors = count(plan_.tensors);
    if (part_.is_last())
      for (TensorInfo& tensor : DenseLayers::tensors(plan_.head, module_))
        plan_.tensors.push_back(std::move(tensor));
    std::vector<bool> is_given(plan_.maps.size());
    for (auto step = plan_.steps.rbegin(); step != plan_.steps.rend(); ++step) {
      if (step->kind == Kind::relu) continue;
      step->start = is_given[step->from] ? Start::output : Start::zero;
      is_given[step->from] = true;
    }
    return std::move(plan_);
  }

 private:
  template <class T>
  static std::uint32_t count(const std::vector<T>& list) {
    return static_cast<std::uint32_t>(list.size());
  }
  std::uint32_t last() const { return count(plan_.maps) - 1; }
  std::uint32_t add_map(PictureShape shape) {
    plan_.maps.push_back({shape, plan_.floats});
    plan_.floats += shape.size();
    return last();
  }

  CnnPlan plan_, kept_;  // kept_: the part's, once the builder is past its end
  std::uint32_t groups_;
  ModelPart part_;
  std::uint32_t module_ = 0, unit_ = 0;
};

Error refused(const std::string& text) {
  return Error{Errc::usage, text};
}

std::size_t poolings_of(const ModelConfig& config) {
  const std::size_t stages = config.stage_channels.size();
  return config.blocks > 0 ? stages - 1 : stages / config.pool_every;
}

Result<void> check_picture_sizes(const ModelConfig& config) {
  const std::vector<std::uint32_t>& sizes = config.sizes;
  if (sizes.empty()) return {};
  if (config.height != config.width)
    return refused(str("data.resolution needs square pictures, not ", config.height, " x ", config.width,
                       "; leave it out"));
  if (sizes.back() != config.height)
    return refused(str("data.resolution ends with ", sizes.back(), " pixels, and the pictures have ", config.height,
                       "; the last size must be that of the whole picture"));
  if (sizes.front() == 0 || std::adjacent_find(sizes.begin(), sizes.end(), std::greater_equal<>()) != sizes.end())
    return refused("data.resolution: the sizes must rise, from 1 pixel on");
  const std::size_t poolings = poolings_of(config);
  if ((sizes.front() >> poolings) == 0)
    return refused(str("data.resolution: pictures of ", sizes.front(), " x ", sizes.front(), " cannot be halved ",
                       poolings, " times; begin with ", 1u << poolings, " pixels or more"));
  if (config.units != UnitRange())
    return refused("data.resolution is not possible for a part of a model; leave it out");
  return {};
}

// Each size of a picture, halved so often.
Result<void> check_pooling(const ModelConfig& config, std::size_t poolings) {
  constexpr std::uint32_t values_max = 1u << 24;  // of one map: places in it are counted in 31 bits
  for (const std::uint32_t channels : config.stage_channels)
    if ((std::uint64_t{config.height} + 2) * (std::uint64_t{config.width} + 2) * channels > values_max)
      return refused(str("model.channels: ", channels, " channels of ", config.height, " x ", config.width,
                         " pixels are more than ", values_max, " values"));
  if (poolings >= 32 || (config.height >> poolings) == 0 || (config.width >> poolings) == 0)
    return refused(str("pictures of ", config.height, " x ", config.width, " cannot be halved ", poolings,
                       " times; ",
                       config.blocks > 0 ? "give model.channels fewer stages" : "raise model.pool_every"));
  return {};
}

Result<void> check(const ModelConfig& config) {
  if (config.height == 0 || config.width == 0 || config.channels == 0)
    return refused(
        "a cnn needs pictures, and the rows of this data set are none; use model.family = \"mlp\"");
  if (config.classes < 2 || config.classes > 256)
    return refused(str("a cnn needs 2 to 256 classes, not ", config.classes));
  if (config.stage_channels.empty())
    return refused(
        "model.channels is empty; a cnn needs at least one convolution, such as channels = [32, 64]");
  for (const std::uint32_t width : config.hidden)
    if (width == 0) return refused("a hidden layer of the cnn has no units; leave it out");
  std::uint32_t before = 0;
  for (const std::uint32_t channels : config.stage_channels) {
    if (channels == 0 || channels > 4096)
      return refused(str("model.channels: ", channels, " is not in 1 to 4096"));
    if (config.groups > 0 && channels % config.groups != 0)
      return refused(str("model.groups = ", config.groups, " does not divide the ", channels,
                         " channels of a convolution"));
    if (config.blocks > 0 && channels < before)
      return refused(
          str("model.channels: a residual stage of ", channels, " channels cannot follow one of ", before));
    before = channels;
  }
  if (config.blocks > 0 && config.groups == 0)
    return refused("residual blocks need GroupNorm; set model.groups, such as groups = 8");
  if (config.pool_every == 0) return refused("model.pool_every = 0; 1 pools after every convolution");
  if (auto pools = check_pooling(config, poolings_of(config)); !pools) return pools;
  return check_picture_sizes(config);
}

void plain(Builder& net, const ModelConfig& config) {
  for (std::size_t i = 0; i < config.stage_channels.size(); ++i) {
    net.unit();
    net.convolution(config.stage_channels[i], net.next_module(), config.groups == 0);
    if (config.groups > 0) net.norm(net.next_module());
    net.next_module();
    net.relu();
    if ((i + 1) % config.pool_every != 0) continue;
    net.next_module();
    net.pool(Kind::max_pool);
  }
  net.unit();
  if (!config.sizes.empty()) net.stretch(config.height >> poolings_of(config));
}

void residual(Builder& net, const ModelConfig& config) {
  net.unit();
  net.convolution(config.stage_channels.front(), net.next_module(), false);
  net.norm(net.next_module());
  net.next_module();
  net.relu();
  for (std::size_t stage = 0; stage < config.stage_channels.size(); ++stage) {
    if (stage > 0) {
      net.next_module();
      net.pool(Kind::max_pool);
    }
    for (std::uint32_t i = 0; i < config.blocks; ++i) {
      net.unit();
      net.block(config.stage_channels[stage]);
    }
  }
  net.unit();
  net.next_module();
  net.pool(Kind::average_pool);
}

CnnPlan plan_for(PictureShape picture, const ModelConfig& config, ModelPart part) {
  Builder net(picture, config.groups, part);
  if (config.blocks > 0) {
    residual(net, config);
  } else {
    plain(net, config);
  }
  net.next_module();  // Flatten
  net.head(config.hidden, config.classes);
  return net.finish();
}

}  // namespace

Result<CnnPlan> plan_cnn(const ModelConfig& config, std::uint32_t size) {
  if (auto checked = check(config); !checked) return checked.error();
  const auto convolutions = static_cast<std::uint32_t>(config.stage_channels.size());
  const auto part = ModelPart::create(
      config.units, config.blocks > 0 ? convolutions * config.blocks + 2 : convolutions + 1);
  if (!part) return part.error();
  const PictureShape whole{config.height, config.width, config.channels};
  return plan_for(size == 0 ? whole : PictureShape{size, size, config.channels}, config, *part);
}

}  // namespace rumor::models
