#include <algorithm>
#include <bit>

#include "compress/link/adapt_history.h"

namespace rumor::compress {

namespace {

// 256 log2(value), to about one part in 256: whole octaves, then a parabola through both ends and the middle.
std::int64_t octaves(std::uint64_t value) {
  const int whole = std::bit_width(value) - 1;
  const std::uint64_t inside = (whole >= 8 ? value >> (whole - 8) : value << (8 - whole)) & 255;
  return 256 * std::int64_t{whole} + static_cast<std::int64_t>(inside + (88 * inside * (256 - inside) >> 16));
}

void scale_to_mean(const std::uint32_t* hits, std::uint32_t count, std::uint64_t trust,
                   std::vector<std::uint32_t>& prior) {
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < count; ++i) sum += hits[i];
  const double mean = static_cast<double>(trust + sum / count);
  prior.resize(count);
  for (std::uint32_t i = 0; i < count; ++i)
    prior[i] = static_cast<std::uint32_t>(static_cast<std::int64_t>(
        static_cast<double>(static_cast<std::int64_t>((trust + hits[i]) << 8)) / mean));
}

void recall(const std::uint8_t* leaning, std::uint32_t count, std::vector<std::uint8_t>& known) {
  known.resize(count);
  std::transform(leaning, leaning + count, known.begin(), Leaning::remembered);
}

}  // namespace

void Recent::resize(std::uint32_t count) {
  hits.assign(count, 0);
  leaning.assign(count, Leaning::none);
}

void Recent::learn(const std::vector<std::uint32_t>& fresh) {
  if (sum != 0) {
    std::array<std::int64_t, trusts.size()> gained{};
    std::uint64_t entries = 0;
    for (std::size_t i = 0; i < hits.size(); ++i) {
      if (fresh[i] == 0) continue;
      entries += fresh[i];
      for (std::size_t t = 0; t < trusts.size(); ++t) gained[t] += fresh[i] * octaves(trusts[t] + hits[i]);
    }
    for (std::size_t t = 0; t < trusts.size(); ++t) {
      gained[t] -= static_cast<std::int64_t>(entries) * octaves(trusts[t] + sum / hits.size());
      merit[t] += gained[t] - merit[t] / 4;
    }
  }
  sum = 0;
  for (std::size_t i = 0; i < hits.size(); ++i) {
    hits[i] = static_cast<std::uint32_t>(std::uint64_t{hits[i]} * 4 / 5) + 256 * fresh[i];
    sum += hits[i];
  }
}

std::uint32_t Recent::trust() const {
  std::size_t best = 2;
  for (std::size_t t = 0; t < trusts.size(); ++t) {
    if (merit[t] > merit[best]) best = t;
  }
  return trusts[best];
}

bool LinkHistory::Impl::priors_of(const Part& part, Priors& priors) const {
  if (part.tensor >= tensors.size()) return false;
  const Tensor& tensor = tensors[part.tensor];
  const Shape shape(part);
  if (shape.columns != tensor.columns || part.end > tensor.size || tensor.by_column.sum == 0) return false;
  priors.rows.clear();
  if (!tensor.by_row.hits.empty()) {
    recall(tensor.by_row.leaning.data() + shape.first_row, shape.rows, priors.row_leaning);
    scale_to_mean(tensor.by_row.hits.data() + shape.first_row, shape.rows, tensor.by_row.trust(),
                  priors.rows);
  }
  recall(tensor.by_column.leaning.data(), shape.columns, priors.column_leaning);
  scale_to_mean(tensor.by_column.hits.data(), shape.columns, tensor.by_column.trust(), priors.columns);
  return true;
}

LinkHistory::LinkHistory(const ParamLayout& layout) : impl_(std::make_unique<Impl>()) {
  for (const TensorInfo& info : layout.tensors()) {
    Impl::Tensor tensor;
    tensor.offset = info.offset;
    tensor.size = info.size;
    tensor.columns = info.cols() <= cells_max ? info.cols() : Shape::columns_wide;
    const std::uint32_t rows = (info.size - 1) / tensor.columns + 1;
    if (rows <= cells_max) tensor.by_row.resize(rows);
    tensor.by_column.resize(tensor.columns);
    impl_->tensors.push_back(std::move(tensor));
  }
}

LinkHistory::~LinkHistory() = default;
LinkHistory::LinkHistory(LinkHistory&&) noexcept = default;
LinkHistory& LinkHistory::operator=(LinkHistory&&) noexcept = default;

void LinkHistory::remember(std::span<const std::uint32_t> index, std::span<const std::uint8_t> negative) {
  std::size_t at = 0;
  for (Impl::Tensor& tensor : impl_->tensors) {
    impl_->fresh_rows.assign(tensor.by_row.hits.size(), 0);
    impl_->fresh_columns.assign(tensor.by_column.hits.size(), 0);
    for (; at < index.size() && index[at] - tensor.offset < tensor.size; ++at) {
      const std::uint32_t position = index[at] - tensor.offset;
      const std::uint32_t row = position / tensor.columns, column = position % tensor.columns;
      const auto lean = [&](std::uint8_t& leaning) {
        leaning = Leaning::moved(leaning, sign_mask(negative[at] != 0));
      };
      if (!tensor.by_row.hits.empty()) {
        ++impl_->fresh_rows[row];
        lean(tensor.by_row.leaning[row]);
      }
      ++impl_->fresh_columns[column];
      lean(tensor.by_column.leaning[column]);
    }
    tensor.by_row.learn(impl_->fresh_rows);
    tensor.by_column.learn(impl_->fresh_columns);
  }
}

}  // namespace rumor::compress
