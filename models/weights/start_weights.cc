#include "models/weights/start_weights.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "models/weights/float_formats.h"
#include "models/weights/start_adapters.h"
#include "models/weights/weight_files.h"
#include "runtime/base/bytes.h"
#include "runtime/base/sha256.h"
#include "runtime/base/text.h"

namespace rumor::models {
namespace {

constexpr std::string_view prefixes[] = {"transformer.", "model.", "module.", "_orig_mod."};

std::string shape_text(const auto& shape) {
  std::string text;
  for (const auto extent : shape) text += str(text.empty() ? "" : ", ", extent);
  return "[" + text + "]";
}

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

// True for the projections that GPT-2 stores inputs first.
bool is_projection(std::string_view name) {
  return ends_with_any(name, {"c_attn.weight", "c_proj.weight", "c_fc.weight"});
}

// True for exit.1.weight, exit.1.bias, exit.2.weight ... (models::ExitConfig), which a model that is not cut has not.
bool is_exit_name(std::string_view name) {
  constexpr std::string_view prefix = "exit.";
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
  return digits > 0 && (name.substr(digits) == ".weight" || name.substr(digits) == ".bias");
}

// True for tensors of a GPT's or a Llama's file that are not its parameters, and for exits.
bool is_passed_over(std::string_view name) {
  return is_exit_name(name) ||
         ends_with_any(name, {".attn.bias", ".attn.masked_bias", "lm_head.weight", ".rotary_emb.inv_freq"});
}

const WeightFiles::Tensor* find(const WeightFiles& files, const std::string& name) {
  if (const WeightFiles::Tensor* tensor = files.find(name)) return tensor;
  for (const std::string_view prefix : prefixes) {
    if (const WeightFiles::Tensor* tensor = files.find(str(prefix, name))) return tensor;
    if (!name.starts_with(prefix)) continue;
    if (const WeightFiles::Tensor* tensor = files.find(name.substr(prefix.size()))) return tensor;
  }
  return nullptr;
}

bool has_shape(const SafetensorsEntry& entry, const std::vector<std::uint32_t>& shape) {
  return std::equal(entry.shape.begin(), entry.shape.end(), shape.begin(), shape.end());
}

// True if the files store projections outputs first. Projections that are not square show it.
bool is_turned(const WeightFiles& files, const ParamLayout& layout) {
  return std::any_of(layout.tensors().begin(), layout.tensors().end(), [&](const TensorInfo& tensor) {
    if (!is_projection(tensor.name) || tensor.shape.size() != 2 || tensor.shape[0] == tensor.shape[1])
      return false;
    const WeightFiles::Tensor* found = find(files, tensor.name);
    return found != nullptr && has_shape(*found->entry, {tensor.shape[1], tensor.shape[0]});
  });
}

Error mismatch(const std::string& path, const std::string& what) {
  return Error{Errc::mismatch,
               str(path, ": ", what, "; it must be of the model that the run file describes")};
}

// A tensor of the layout and the place of its values.
struct Source {
  const TensorInfo* tensor = nullptr;
  WeightFiles::Tensor found;
  FloatFormat format = FloatFormat::f32;
  bool turned = false;  // stored with its two dimensions the other way round

  Error refusal(const std::string& what) const { return mismatch(*found.path, what); }
};

Result<Source> source_of(const WeightFiles& files, const TensorInfo& tensor, bool turned) {
  const WeightFiles::Tensor* found = find(files, tensor.name);
  if (found == nullptr) return mismatch(files.name(), str("tensor ", tensor.name, " is missing"));
  Source source{&tensor, *found, FloatFormat::f32, turned && is_projection(tensor.name) && tensor.shape.size() == 2};
  std::vector<std::uint32_t> shape = tensor.shape;
  if (source.turned) std::swap(shape[0], shape[1]);
  if (!has_shape(*found->entry, shape))
    return source.refusal(str("tensor ", found->entry->name, " is ", shape_text(found->entry->shape),
                              ", the model wants ", shape_text(tensor.shape)));
  const auto format = float_format(found->entry->dtype);
  if (!format)
    return source.refusal(str("tensor ", found->entry->name, " is ", found->entry->dtype,
                              ", not F32, BF16, F16 or F64"));
  source.format = *format;
  return source;
}

// The sources of a layout's tensors, in its order. Everything in the files is used or passed over.
Result<std::vector<Source>> sources_of(const WeightFiles& files, const ParamLayout& layout) {
  const bool turned = is_turned(files, layout);
  std::vector<Source> sources;
  std::set<std::string_view> used;
  for (const TensorInfo& tensor : layout.tensors()) {
    auto source = source_of(files, tensor, turned);
    if (!source) return source.error();
    used.insert(source->found.entry->name);
    sources.push_back(*source);
  }
  for (const auto& [name, tensor] : files.tensors())
    if (!used.contains(name) && !is_passed_over(name))
      return mismatch(*tensor.path, str("the model has no tensor ", name));
  return sources;
}

// Bytes of the source's tensor from byte `first` on, into `out`.
Result<void> read_bytes(const Source& source, std::uint64_t first, std::span<std::uint8_t> out) {
  auto done = source.found.file->read(*source.found.entry, first, out);
  if (!done) return Error{done.error().code, str(*source.found.path, ": ", done.error().text)};
  return done;
}

// As for_values(), of a tensor that is stored with its two dimensions the other way round: it is in memory once more.
template <class Take>
Result<void> for_turned_values(const Source& source, Take take) {
  const std::size_t rows = source.tensor->shape[0], columns = source.tensor->size / rows;
  Bytes bytes(source.tensor->size * bytes_of(source.format));
  if (auto done = read_bytes(source, 0, bytes); !done) return done;
  std::vector<float> values(columns);
  for (std::size_t row = 0; row < rows; ++row) {
    read_floats(source.format, bytes, row, rows, values);
    if (Result<void> taken = take(row * columns, std::span<const float>(values)); !taken) return taken;
  }
  return {};
}

// Hands the values over as the layout has them, block by block: take(position in the tensor, values) returns an error
// or nothing. So no file is a second time in memory.
template <class Take>
Result<void> for_values(const Source& source, Take take) {
  if (source.turned) return for_turned_values(source, take);
  constexpr std::size_t block = 16'384;
  const std::size_t wide = bytes_of(source.format), size = source.tensor->size;
  Bytes bytes(block * wide);
  std::vector<float> values(block);
  for (std::size_t at = 0; at < size; at += block) {
    const std::size_t count = std::min(block, size - at);
    const auto part = std::span(values).first(count);
    const auto raw = std::span(bytes).first(count * wide);
    if (auto done = read_bytes(source, at * wide, raw); !done) return done;
    read_floats(source.format, raw, 0, 1, part);
    if (Result<void> taken = take(at, std::span<const float>(part)); !taken) return taken;
  }
  return {};
}

Error not_finite(const Source& source, std::size_t at, float value) {
  return Error{Errc::limit, str(*source.found.path, ": tensor ", source.tensor->name, " holds ", value,
                                " at position ", at, "; weights must be finite")};
}

}  // namespace

Hash256 StartWeights::identity() const {
  if (beside.empty()) return hash;
  ByteWriter both;
  both.raw(hash.view());
  both.raw({reinterpret_cast<const std::uint8_t*>(beside.data()), beside.size()});
  return sha256(both.bytes());
}

Result<std::vector<float>> read_named_weights(const std::string& path, const ParamLayout& layout) {
  const auto files = WeightFiles::open(path);
  if (!files) return files.error();
  return read_named_weights(*files, layout);
}

Result<std::vector<float>> read_named_weights(const WeightFiles& files, const ParamLayout& layout) {
  const auto sources = sources_of(files, layout);
  if (!sources) return sources.error();
  std::vector<float> weights(layout.params());
  for (const Source& source : *sources) {
    const auto copied = for_values(source, [&](std::size_t at, std::span<const float> values) -> Result<void> {
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (!std::isfinite(values[i])) return not_finite(source, at + i, values[i]);
        weights[source.tensor->offset + at + i] = values[i];
      }
      return {};
    });
    if (!copied) return copied.error();
  }
  return weights;
}

Result<std::shared_ptr<const StartWeights>> read_start_weights(const std::string& path,
                                                               const ParamLayout& layout, int grid_bits) {
  const auto files = WeightFiles::open(path);
  if (!files) return files.error();
  const auto sources = sources_of(*files, layout);
  if (!sources) return sources.error();
  auto start = std::make_shared<StartWeights>();
  start->weights.resize(layout.params());
  for (const Source& source : *sources) {
    const auto rounded = for_values(source, [&](std::size_t at, std::span<const float> values) -> Result<void> {
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (!std::isfinite(values[i])) return not_finite(source, at + i, values[i]);
        const double units = std::round(std::ldexp(double{values[i]}, grid_bits));  // exact but for the rounding
        if (std::abs(units) > 0x7fff'ffff)
          return Error{Errc::limit, str(*source.found.path, ": tensor ", source.tensor->name, " holds ", values[i],
                                        " at position ", at + i, "; with compress.grid_bits = ", grid_bits,
                                        " weights lie within ", std::ldexp(1.0, 31 - grid_bits))};
        start->weights[source.tensor->offset + at + i] = static_cast<std::int32_t>(units);
      }
      return {};
    });
    if (!rounded) return rounded.error();
  }
  start->hash = sha256({reinterpret_cast<const std::uint8_t*>(start->weights.data()),
                        start->weights.size() * sizeof(std::int32_t)});
  return std::shared_ptr<const StartWeights>(std::move(start));
}

Result<std::shared_ptr<const StartWeights>> load_start_weights(const std::string& path, ModelConfig config,
                                                               const DataSet& data, int grid_bits) {
  const bool adapts = config.adapter.is_on();
  if (adapts ? config.adapter.start.empty() : path.empty()) return std::shared_ptr<const StartWeights>();
  data.describe(config);
  const auto model = make_model(config);
  if (!model) return model.error();
  if (adapts) return read_start_adapters(config.adapter.start, config, (*model)->layout(), grid_bits);
  return read_start_weights(path, (*model)->layout(), grid_bits);
}

}  // namespace rumor::models
