#include "models/decoders/token_decoder.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "models/kernels/portable_math.h"
#include "runtime/base/check.h"

namespace rumor::models {

std::span<const float> ContextDecoder::read(Token token) {
  RUMOR_CHECK(token < logits_.size());
  if (static_cast<long>(tokens_.size()) == context_) {
    tokens_.erase(tokens_.begin(), tokens_.end() - context_ / 2);
    for (std::size_t place = 0; place < tokens_.size(); ++place) advance(tokens_[place], static_cast<long>(place));
  }
  advance(token, static_cast<long>(tokens_.size()));
  tokens_.push_back(token);
  predict(logits_.data());
  return logits_;
}

Token draw_token(std::span<const float> logits, const SamplingRule& rule, Prng& prng) {
  RUMOR_CHECK(!logits.empty());
  const auto top = std::max_element(logits.begin(), logits.end());
  if (rule.temperature == 0) return static_cast<Token>(top - logits.begin());
  std::vector<Token> order(logits.size());
  std::iota(order.begin(), order.end(), Token{0});
  const auto likelier = [&](Token a, Token b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
  };
  const std::size_t count = rule.top_k == 0 ? logits.size() : std::min<std::size_t>(rule.top_k, logits.size());
  if (count < logits.size())
    std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count) - 1, order.end(), likelier);
  std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count));  // equal everywhere
  std::vector<double> sums(count);
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i)
    sums[i] = sum +=
        portable_exp((static_cast<double>(logits[order[i]]) - static_cast<double>(*top)) / rule.temperature);
  const double drawn = static_cast<double>(prng.next() >> 11) * 0x1p-53 * sum;
  const auto at = std::upper_bound(sums.begin(), sums.end() - 1, drawn) - sums.begin();
  return order[static_cast<std::size_t>(at)];
}

}  // namespace rumor::models
