#include "models/families/adapters.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "models/kernels/kernels.h"
#include "models/kernels/tasks.h"
#include "runtime/base/check.h"
#include "runtime/base/memory_bytes.h"
#include "runtime/base/text.h"

namespace rumor::models {
namespace {

constexpr std::string_view weight_ending = ".weight";

// As in PEFT, a target is the end of a projection's name.
bool is_target(std::string_view projection, std::string_view target) {
  return projection == target || projection.ends_with(str(".", target));
}

// The last parts of the projections' names, for errors: "q_proj, k_proj, ...".
std::string known_targets(const std::vector<TensorInfo>& projections) {
  std::set<std::string_view> seen;
  std::string known;
  for (const TensorInfo& tensor : projections) {
    std::string_view name = tensor.name;
    name.remove_suffix(weight_ending.size());
    name = name.substr(name.rfind('.') + 1);
    if (seen.insert(name).second) known += str(known.empty() ? "" : ", ", name);
  }
  return known;
}

Result<void> check_targets(const std::vector<std::string>& targets, const std::vector<TensorInfo>& projections) {
  for (const std::string& target : targets) {
    const bool found = std::any_of(projections.begin(), projections.end(), [&](const TensorInfo& tensor) {
      return is_target(std::string_view(tensor.name).substr(0, tensor.name.size() - weight_ending.size()), target);
    });
    if (!found)
      return Error{Errc::usage, str("model.adapter_targets: this model has no projection ", target, "; it has ",
                                    known_targets(projections))};
  }
  return {};
}

// y [columns][rows] of x [rows][columns].
const float* turn(LargeVector<float>& memory, long rows, long columns, const float* x) {
  float* y = room_in(memory, static_cast<std::size_t>(rows * columns));
  kernels().transpose(rows, columns, x, columns, y, rows);
  return y;
}

void scale_by(Parallel* parallel, long count, float factor, float* x) {
  each_range(parallel, count, 16, [&](Range part) {
    for (long i = part.begin; i < part.end; ++i) x[i] *= factor;
  });
}

}  // namespace

std::vector<std::string> usual_adapter_targets(std::string_view family) {
  if (family == "gpt") return {"c_attn"};
  return {"q_proj", "v_proj"};
}

Result<AdapterPlan> plan_adapters(const ModelConfig& config, const Model& whole) {
  const AdapterConfig& adapter = config.adapter;
  if (config.family != "gpt" && config.family != "llama")
    return Error{Errc::usage, str("model.adapter = \"", adapter.kind, "\" is for models of family gpt and llama, and ",
                                  "this one is of family ", config.family, "; set model.adapter = \"none\"")};
  if (!(adapter.alpha > 0) || adapter.rank == 0)
    return Error{Errc::usage, "model.adapter_rank and model.adapter_alpha must be above 0"};
  std::vector<TensorInfo> projections;
  for (const TensorInfo& tensor : whole.layout().tensors())
    if (whole.hidden_matrices(tensor) > 0) projections.push_back(tensor);
  const std::vector<std::string> targets = adapter.targets.empty() ? usual_adapter_targets(config.family)
                                                                   : adapter.targets;
  if (auto known = check_targets(targets, projections); !known) return known.error();
  AdapterPlan plan;
  plan.rank = adapter.rank;
  plan.scale = static_cast<float>(adapter.alpha / adapter.rank);
  std::vector<TensorInfo> tensors;
  for (const TensorInfo& tensor : projections) {
    AdapterPlace place{.projection = tensor.name.substr(0, tensor.name.size() - weight_ending.size()),
                       .weight = tensor.offset,
                       .inputs_first = config.family == "gpt"};
    if (std::none_of(targets.begin(), targets.end(),
                     [&](const std::string& target) { return is_target(place.projection, target); }))
      continue;
    const std::uint32_t in = tensor.shape[place.inputs_first ? 0 : 1], out = tensor.shape[place.inputs_first ? 1 : 0];
    place.in = in;
    place.out = out;
    tensors.push_back({str("base_model.model.", place.projection, ".lora_A.weight"), {adapter.rank, in}});
    tensors.push_back({str("base_model.model.", place.projection, ".lora_B.weight"), {out, adapter.rank}});
    plan.places.push_back(std::move(place));
  }
  auto layout = ParamLayout::create(std::move(tensors));
  if (!layout) return layout.error();
  plan.layout = std::move(layout).value();
  for (std::size_t i = 0; i < plan.places.size(); ++i) {
    plan.places[i].a = plan.layout.tensors()[2 * i].offset;
    plan.places[i].b = plan.layout.tensors()[2 * i + 1].offset;
  }
  return plan;
}

void merge_adapters(const AdapterPlan& plan, std::span<const float> adapters, std::span<float> weights) {
  RUMOR_CHECK(adapters.size() == plan.layout.params());
  LargeVector<float> turned, product;
  const long rank = plan.rank;
  for (const AdapterPlace& place : plan.places) {
    const float *a = adapters.data() + place.a, *b = adapters.data() + place.b;
    const auto count = static_cast<std::size_t>(place.in * place.out);
    RUMOR_CHECK(place.weight + count <= weights.size());
    float* change = room_in(product, count);
    // [in][out] = A^T B^T, or [out][in] = B A
    if (place.inputs_first)
      kernels().matmul(place.in, place.out, rank, {a, 1, place.in}, turn(turned, place.out, rank, b), place.out, change,
                       place.out, Start::zero);
    else
      kernels().matmul(place.out, place.in, rank, {b, rank, 1}, a, place.in, change, place.in, Start::zero);
    for (std::size_t i = 0; i < count; ++i) weights[place.weight + i] += plan.scale * change[i];
  }
}

Adapters::Adapters(AdapterPlan plan) : plan_(std::move(plan)), inner_(plan_.places.size()) {}

void Adapters::use(std::span<const float> params, std::span<float> gradient) {
  RUMOR_CHECK(params.size() == plan_.layout.params());
  RUMOR_CHECK(gradient.empty() || gradient.size() == params.size());
  params_ = params;
  gradient_ = gradient;
}

const AdapterPlace* Adapters::find(std::uint32_t weight) const {
  const auto at = std::lower_bound(plan_.places.begin(), plan_.places.end(), weight,
                                   [](const AdapterPlace& one, std::uint32_t wanted) { return one.weight < wanted; });
  return at != plan_.places.end() && at->weight == weight ? &*at : nullptr;
}

void Adapters::forward(Parallel* parallel, std::uint32_t weight, long rows, long y_row, const float* x, float* y) {
  const AdapterPlace* place = find(weight);
  if (place == nullptr) return;
  const long rank = plan_.rank;
  float* inner = room_in(inner_[static_cast<std::size_t>(place - plan_.places.data())],
                         static_cast<std::size_t>(rows * rank));
  // inner[rows][rank] = x[rows][in] A[rank][in]^T;  y[rows][out] += inner B[out][rank]^T
  const float* a = turn(turned_, rank, place->in, params_.data() + place->a);
  parallel_matmul(parallel, rows, rank, place->in, {x, place->in, 1}, a, rank, inner, rank, Start::zero);
  scale_by(parallel, rows * rank, plan_.scale, inner);
  const float* b = turn(turned_, place->out, rank, params_.data() + place->b);
  parallel_matmul(parallel, rows, place->out, rank, {inner, rank, 1}, b, place->out, y, y_row, Start::output);
}

void Adapters::backward(Parallel* parallel, std::uint32_t weight, long rows, long y_row, const float* x,
                        const float* change, float* x_change) {
  const AdapterPlace* place = find(weight);
  if (place == nullptr) return;
  RUMOR_CHECK(!gradient_.empty());
  const long rank = plan_.rank, in = place->in, out = place->out;
  const float* inner = inner_[static_cast<std::size_t>(place - plan_.places.data())].data();
  float* inner_change = room_in(inner_change_, static_cast<std::size_t>(rows * rank));
  // d B[out][rank] = change[rows][out]^T inner;  d inner[rows][rank] = scale change B
  parallel_matmul(parallel, out, rank, rows, {change, 1, y_row}, inner, rank, gradient_.data() + place->b, rank,
                  Start::zero);
  parallel_matmul(parallel, rows, rank, out, {change, y_row, 1}, params_.data() + place->b, rank, inner_change, rank,
                  Start::zero);
  scale_by(parallel, rows * rank, plan_.scale, inner_change);
  // d A[rank][in] = d inner^T x;  d x[rows][in] += d inner A
  parallel_matmul(parallel, rank, in, rows, {inner_change, 1, rank}, x, in, gradient_.data() + place->a, in,
                  Start::zero);
  parallel_matmul(parallel, rows, in, rank, {inner_change, rank, 1}, params_.data() + place->a, in, x_change, in,
                  Start::output);
}

std::size_t Adapters::memory_bytes() const {
  std::size_t bytes = capacity_bytes(inner_change_, turned_);
  for (const LargeVector<float>& inner : inner_) bytes += capacity_bytes(inner);
  return bytes;
}

}  // namespace rumor::models
