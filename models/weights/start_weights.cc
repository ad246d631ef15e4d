#include "models/weights/start_weights.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

#include "models/weights/safetensors.h"
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

// True for tensors of a GPT's file that are not its parameters.
bool is_passed_over(std::string_view name) {
  return ends_with_any(name, {".attn.bias", ".attn.masked_bias", "lm_head.weight"});
}

const SafetensorsEntry* find(const SafetensorsFile& file, const std::string& name) {
  if (const SafetensorsEntry* entry = file.find(name)) return entry;
  for (const std::string_view prefix : prefixes) {
    if (const SafetensorsEntry* entry = file.find(str(prefix, name))) return entry;
    if (!name.starts_with(prefix)) continue;
    if (const SafetensorsEntry* entry = file.find(name.substr(prefix.size()))) return entry;
  }
  return nullptr;
}

bool has_shape(const SafetensorsEntry& entry, const std::vector<std::uint32_t>& shape) {
  return std::equal(entry.shape.begin(), entry.shape.end(), shape.begin(), shape.end());
}

// True if the file stores projections outputs first. Projections that are not square show it.
bool is_turned(const SafetensorsFile& file, const ParamLayout& layout) {
  return std::any_of(layout.tensors().begin(), layout.tensors().end(), [&](const TensorInfo& tensor) {
    if (!is_projection(tensor.name) || tensor.shape.size() != 2 || tensor.shape[0] == tensor.shape[1])
      return false;
    const SafetensorsEntry* entry = find(file, tensor.name);
    return entry != nullptr && has_shape(*entry, {tensor.shape[1], tensor.shape[0]});
  });
}

Error mismatch(const std::string& path, const std::string& what) {
  return Error{Errc::mismatch,
               str(path, ": ", what, "; it must be of the model that the run file describes")};
}

Result<void> fill(const SafetensorsFile& file, const SafetensorsEntry& entry, const TensorInfo& tensor,
                  bool turned, float* out) {
  auto values = file.floats(entry);
  if (!values) return values.error();
  if (!turned) {
    std::copy(values->begin(), values->end(), out);
    return {};
  }
  const std::size_t rows = tensor.shape[0], columns = tensor.shape[1];
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t column = 0; column < columns; ++column)
      out[row * columns + column] = (*values)[column * rows + row];
  return {};
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
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(path, ignored);
  const std::string name = is_folder ? path + "/model.safetensors" : path;
  const auto file = SafetensorsFile::read(name);
  if (!file) return file.error();
  const bool turned = is_turned(*file, layout);
  std::vector<float> weights(layout.params());
  std::set<std::string_view> used;
  for (const TensorInfo& tensor : layout.tensors()) {
    const SafetensorsEntry* entry = find(*file, tensor.name);
    if (entry == nullptr) return mismatch(name, str("tensor ", tensor.name, " is missing"));
    std::vector<std::uint32_t> shape = tensor.shape;
    const bool turn = turned && is_projection(tensor.name) && shape.size() == 2;
    if (turn) std::swap(shape[0], shape[1]);
    if (!has_shape(*entry, shape))
      return mismatch(name, str("tensor ", entry->name, " is ", shape_text(entry->shape),
                                ", the model wants ", shape_text(tensor.shape)));
    if (auto filled = fill(*file, *entry, tensor, turn, weights.data() + tensor.offset); !filled)
      return mismatch(name, filled.error().text);
    used.insert(entry->name);
  }
  for (const SafetensorsEntry& entry : file->entries())
    if (!used.contains(entry.name) && !is_passed_over(entry.name))
      return mismatch(name, str("the model has no tensor ", entry.name));
  return weights;
}

Result<std::shared_ptr<const StartWeights>> read_start_weights(const std::string& path,
                                                               const ParamLayout& layout, int grid_bits) {
  const auto floats = read_named_weights(path, layout);
  if (!floats) return floats.error();
  auto start = std::make_shared<StartWeights>();
  start->weights.resize(floats->size());
  for (const TensorInfo& tensor : layout.tensors())
    for (std::uint32_t i = tensor.offset; i < tensor.offset + tensor.size; ++i) {
      const double units =
          std::round(std::ldexp(double{(*floats)[i]}, grid_bits));  // exact but for the rounding
      if (!(std::abs(units) <= 0x7fff'ffff))
        return Error{Errc::limit, str(path, ": tensor ", tensor.name, " holds ", (*floats)[i],
                                      " at position ", i - tensor.offset, "; with compress.grid_bits = ",
                                      grid_bits, " weights lie within ", std::ldexp(1.0, 31 - grid_bits))};
      start->weights[i] = static_cast<std::int32_t>(units);
    }
  start->hash = sha256({reinterpret_cast<const std::uint8_t*>(start->weights.data()),
                        start->weights.size() * sizeof(std::int32_t)});
  return std::shared_ptr<const StartWeights>(std::move(start));
}

Result<std::shared_ptr<const StartWeights>> load_start_weights(const std::string& path, ModelConfig config,
                                                               const DataSet& data, int grid_bits) {
  if (path.empty()) return std::shared_ptr<const StartWeights>();
  data.describe(config);
  const auto model = make_model(config);
  if (!model) return model.error();
  return read_start_weights(path, (*model)->layout(), grid_bits);
}

}  // namespace rumor::models
