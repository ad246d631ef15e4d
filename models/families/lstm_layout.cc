// The tensors of an LSTM: made from a configuration, found in a layout.
#include <algorithm>

#include "models/families/lstm.h"
#include "models/families/tensor_finder.h"
#include "runtime/base/text.h"

namespace rumor::models {
namespace {

constexpr std::size_t lstm_layers_max = 3;
constexpr std::uint32_t lstm_width_max = 8192;

Result<void> check_lstm(const ModelConfig& config) {
  const std::vector<std::uint32_t>& hidden = config.hidden;
  if (config.vocabulary == 0)
    return Error{Errc::usage, "an lstm wants tokens: set data.kind to one that has them, such as \"text\""};
  if (config.vocabulary < 2 || config.vocabulary > vocabulary_max)
    return Error{Errc::usage,
                 str("an lstm needs a vocabulary of 2 to ", vocabulary_max, ", not ", config.vocabulary)};
  if (config.context == 0 || config.context > 65'536)
    return Error{Errc::usage, str("model.context must be from 1 to 65536, not ", config.context)};
  if (config.embedding == 0 || config.embedding > lstm_width_max)
    return Error{Errc::usage,
                 str("model.embedding of an lstm must be from 1 to ", lstm_width_max, ", not ", config.embedding)};
  if (hidden.empty() || hidden.size() > lstm_layers_max)
    return Error{Errc::usage, str("an lstm has 1 to ", lstm_layers_max, " layers, not ", hidden.size(),
                                  "; model.hidden has one width for each, such as [256, 256]")};
  if (hidden[0] == 0 || hidden[0] > lstm_width_max)
    return Error{Errc::usage,
                 str("the layers of an lstm are from 1 to ", lstm_width_max, " wide (model.hidden), not ", hidden[0])};
  if (std::any_of(hidden.begin(), hidden.end(), [&](std::uint32_t width) { return width != hidden[0]; }))
    return Error{Errc::usage, "the layers of an lstm have one width; make all numbers of model.hidden equal"};
  return {};
}

// The offsets of a shape whose sizes are known.
Result<LstmShape> find_lstm_tensors(const ParamLayout& layout, LstmShape shape) {
  TensorFinder find(layout);
  const auto units = static_cast<std::uint32_t>(shape.units),
             embedding = static_cast<std::uint32_t>(shape.embedding),
             vocabulary = static_cast<std::uint32_t>(shape.vocabulary);
  if (shape.part.is_first()) shape.table = find.offset("embedding.weight", {vocabulary, embedding});
  for (std::uint32_t i = shape.part.begin; i < shape.part.end; ++i)
    shape.layer.push_back({find.offset(str("lstm.weight_ih_l", i), {4 * units, i == 0 ? embedding : units}),
                           find.offset(str("lstm.weight_hh_l", i), {4 * units, units}),
                           find.offset(str("lstm.bias_ih_l", i), {4 * units}),
                           find.offset(str("lstm.bias_hh_l", i), {4 * units})});
  if (shape.part.is_last()) {
    shape.head = find.offset("head.weight", {vocabulary, units});
    shape.head_bias = find.offset("head.bias", {vocabulary});
  }
  if (!find.wrong().empty())
    return Error{Errc::mismatch, str("this is no LSTM that can be computed: ", find.wrong())};
  return shape;
}

}  // namespace

Result<ParamLayout> lstm_layout(const ModelConfig& config) {
  if (auto fine = check_lstm(config); !fine) return fine.error();
  const std::uint32_t units = config.hidden[0];
  const auto part = ModelPart::create(config.units, static_cast<std::uint32_t>(config.hidden.size()));
  if (!part) return part.error();
  std::vector<TensorInfo> tensors;
  if (part->is_first()) tensors.push_back({"embedding.weight", {config.vocabulary, config.embedding}});
  for (std::uint32_t i = part->begin; i < part->end; ++i) {
    tensors.push_back({str("lstm.weight_ih_l", i), {4 * units, i == 0 ? config.embedding : units}});
    tensors.push_back({str("lstm.weight_hh_l", i), {4 * units, units}});
    tensors.push_back({str("lstm.bias_ih_l", i), {4 * units}});
    tensors.push_back({str("lstm.bias_hh_l", i), {4 * units}});
  }
  if (part->is_last()) {
    tensors.push_back({"head.weight", {config.vocabulary, units}});
    tensors.push_back({"head.bias", {config.vocabulary}});
  }
  return ParamLayout::create(std::move(tensors));
}

Result<LstmShape> lstm_shape(const ParamLayout& layout) {
  const TensorFinder find(layout);
  const TensorInfo *table = find.find("embedding.weight"), *recurrent = find.find("lstm.weight_hh_l0");
  if (!table || !recurrent || table->shape.size() != 2 || recurrent->shape.size() != 2)
    return Error{Errc::mismatch, "this is no LSTM: it has no matrices embedding.weight and lstm.weight_hh_l0"};
  const std::uint32_t vocabulary = table->shape[0], embedding = table->shape[1], units = recurrent->shape[1];
  if (vocabulary > vocabulary_max || embedding > lstm_width_max || units > lstm_width_max)
    return Error{Errc::mismatch, str("this LSTM is larger than the ", vocabulary_max, " tokens and the width of ",
                                     lstm_width_max, " that are supported")};
  LstmShape shape;
  shape.vocabulary = vocabulary;
  shape.embedding = embedding;
  shape.units = units;
  while (find.find(str("lstm.weight_hh_l", shape.part.end))) ++shape.part.end;
  shape.part.units = shape.part.end;
  return find_lstm_tensors(layout, std::move(shape));
}

Result<LstmShape> lstm_shape(const ModelConfig& config, const ParamLayout& layout) {
  const auto part = ModelPart::create(config.units, static_cast<std::uint32_t>(config.hidden.size()));
  if (!part) return part.error();
  LstmShape shape;
  shape.vocabulary = config.vocabulary;
  shape.embedding = config.embedding;
  shape.units = config.hidden[0];
  shape.part = *part;
  return find_lstm_tensors(layout, std::move(shape));
}

}  // namespace rumor::models
