#include "models/decoders/lstm_decoder.h"

#include <algorithm>
#include <utility>

#include "models/kernels/kernels.h"
#include "models/kernels/recurrent_kernels.h"
#include "models/kernels/sequence_kernels.h"
#include "runtime/base/check.h"

namespace rumor::models {

LstmDecoder::LstmDecoder(LstmShape shape, std::span<const float> params)
    : shape_(std::move(shape)), params_(params.data()), states_(shape_.layer.size()) {
  const auto padded = static_cast<std::size_t>(LstmLayer::padded(shape_.units));
  for (State& state : states_)
    for (std::vector<float>* values : {&state.out, &state.cell, &state.cell_before}) values->resize(padded);
  sums_.resize(4 * static_cast<std::size_t>(shape_.units));
  gates_.resize(4 * padded);
  logits_.resize(static_cast<std::size_t>(shape_.vocabulary));
}

// The chains of operations of LstmLayer: the biases, then the input, then the state. Padding in gates_ and in a state
// has values that nothing reads.
void LstmDecoder::advance(const LstmShape::Layer& at, long inputs, const float* x, State& state) {
  const KernelTable& k = kernels();
  const long units = shape_.units, rows = 4 * units, groups = LstmLayer::padded(units) / 16;
  k.sequence->add(rows, params_ + at.bias_ih, params_ + at.bias_hh, sums_.data());
  k.matmul(rows, 1, inputs, {params_ + at.ih, inputs, 1}, x, 1, sums_.data(), 1, Start::output);
  k.matmul(rows, 1, units, {params_ + at.hh, units, 1}, state.out.data(), 1, sums_.data(), 1, Start::output);
  for (long gate = 0; gate < 4; ++gate) {
    for (long unit = 0; unit < units; ++unit)
      gates_[static_cast<std::size_t>(unit / 16 * 64 + gate * 16 + unit % 16)] =
          sums_[static_cast<std::size_t>(gate * units + unit)];
  }
  std::swap(state.cell, state.cell_before);
  k.recurrent->lstm_forward(1, groups, gates_.data(), 0, state.cell_before.data(), state.cell.data(), state.out.data(),
                            0);
}

std::span<const float> LstmDecoder::read(Token token) {
  RUMOR_CHECK(token < shape_.vocabulary);
  const float* x = params_ + shape_.table + token * shape_.embedding;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    advance(shape_.layer[i], shape_.inputs_of(i), x, states_[i]);
    x = states_[i].out.data();
  }
  std::copy_n(params_ + shape_.head_bias, shape_.vocabulary, logits_.data());
  kernels().matmul(shape_.vocabulary, 1, shape_.units, {params_ + shape_.head, shape_.units, 1}, x, 1, logits_.data(),
                   1, Start::output);
  return logits_;
}

}  // namespace rumor::models
