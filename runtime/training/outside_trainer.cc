#include "runtime/training/outside_trainer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "runtime/base/memory_bytes.h"
#include "runtime/base/text.h"

namespace rumor {

namespace {

constexpr std::uint32_t stretch_params = 1 << 16;

struct Float {
  using Word = float;
  static float read(Word word) { return word; }
  static Word word(float value) { return value; }
};

struct Bfloat {
  using Word = std::uint16_t;  // the upper half of a float
  static float read(Word word) { return std::bit_cast<float>(std::uint32_t{word} << 16); }
  // To nearest, ties to even, as PyTorch. A value that is not finite stays so.
  static Word word(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7fff'ffff) > 0x7f80'0000) return static_cast<Word>(bits >> 16 | 0x40);
    return static_cast<Word>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
};

// call(Form, words of the tensor)
template <class Call>
auto with_words(const OutsideTensor& tensor, Call&& call) {
  if (tensor.type == OutsideTensor::Type::bf16) return call(Bfloat{}, static_cast<Bfloat::Word*>(tensor.data));
  return call(Float{}, static_cast<Float::Word*>(tensor.data));
}

// Pieces of tensors, so that threads have work of the same size: piece(t, begin, end), positions within the tensor.
template <class Piece>
void each_piece(const ParamLayout& layout, Parallel& parallel, Piece&& piece) {
  std::vector<std::pair<std::size_t, std::uint32_t>> pieces;
  for (std::size_t t = 0; t < layout.tensors().size(); ++t)
    for (std::uint64_t begin = 0; begin < layout.tensors()[t].size; begin += stretch_params)
      pieces.emplace_back(t, static_cast<std::uint32_t>(begin));
  parallel.each(pieces.size(), [&](std::size_t p) {
    const auto [t, begin] = pieces[p];
    piece(t, begin, std::min(layout.tensors()[t].size - begin, stretch_params) + begin);
  });
}

// The entries of the drift, as an update moves the shared weights by them: by the mean over the peers.
class MeanEntries final : public compress::CompressorEntries {
 public:
  MeanEntries(std::size_t peers, compress::Compressor& compressor, const ParamLayout& layout,
              compress::SparseUpdate& update, compress::CodecOptions options)
      : CompressorEntries(compressor, layout, update, options),
        peers_(static_cast<std::int64_t>(peers)),
        update_(update) {
    share();
  }

  Result<void> shrink(std::uint32_t entries) override {
    auto cut = CompressorEntries::shrink(entries);
    share();
    return cut;
  }

 private:
  void share() {
    update_.step = part_of(update_.step);
    for (std::int32_t& step : update_.tensor_step) step = part_of(step);
    compress::normalize_steps(update_);
  }

  std::int32_t part_of(std::int32_t step) const {
    if (step == 0) return 0;
    return static_cast<std::int32_t>(std::max<std::int64_t>(1, (step + peers_ / 2) / peers_));
  }

  std::int64_t peers_;
  compress::SparseUpdate& update_;
};

}  // namespace

OutsideTrainer::OutsideTrainer(const RunConfig& config, const ParamLayout& layout, std::vector<OutsideTensor> tensors,
                               std::vector<std::span<std::uint8_t>> local, LargeVector<std::int32_t> start)
    : layout_(layout),
      tensors_(std::move(tensors)),
      local_(std::move(local)),
      start_(std::move(start)),
      view_(layout_.params(), config.grid_bits, layout_.params()) {
  const compress::CompressorOptions options{
      .density = config.density_for(1), .grid_bits = config.grid_bits, .emit = config.emit, .scope = config.scope};
  compressor_ = std::make_unique<compress::Compressor>(layout_, options);
  written_.assign(layout_.params(), 0.0f);
}

Result<std::unique_ptr<OutsideTrainer>> OutsideTrainer::create(const RunConfig& config, const ParamLayout& layout,
                                                               std::vector<OutsideTensor> tensors,
                                                               std::vector<std::span<std::uint8_t>> local,
                                                               LargeVector<std::int32_t> start) {
  RUMOR_CHECK(tensors.size() == layout.tensors().size() && start.size() == layout.params());
  if (config.has_byte_budget())
    return Error{Errc::usage, "a training loop of another program is given compress.density, not bytes_per_update or "
                              "bytes_per_second; set compress.density=0.001 or so"};
  std::unique_ptr<OutsideTrainer> trainer(
      new OutsideTrainer(config, layout, std::move(tensors), std::move(local), std::move(start)));
  trainer->remember_written();
  for (std::size_t t = 0; t < layout.tensors().size(); ++t) {
    const TensorInfo& info = layout.tensors()[t];
    for (const float value : std::span(trainer->written_).subspan(info.offset, info.size))
      if (!std::isfinite(value))
        return Error{Errc::limit, str("tensor ", info.name, " holds a value that is not a finite number")};
  }
  return trainer;
}

Result<LargeVector<std::int32_t>> OutsideTrainer::on_grid(const ParamLayout& layout,
                                                          std::span<const OutsideTensor> tensors, int grid_bits) {
  LargeVector<std::int32_t> weights(layout.params());
  const double beyond = std::ldexp(1.0, 31);
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const TensorInfo& info = layout.tensors()[t];
    const bool fits = with_words(tensors[t], [&](auto form, auto* words) {
      for (std::uint32_t i = 0; i < info.size; ++i) {
        const double units = std::round(std::ldexp(double{form.read(words[i])}, grid_bits));
        if (!(std::abs(units) < beyond)) return false;
        weights[info.offset + i] = static_cast<std::int32_t>(units);
      }
      return true;
    });
    if (!fits)
      return Error{Errc::limit,
                   str("tensor ", info.name, " holds a value that is not a finite number below ",
                       fixed(std::ldexp(1.0, 31 - grid_bits), 0), ", which is where the weight grid ends; scale the ",
                       "model down, or choose a smaller compress.grid_bits for the whole run")};
  }
  return weights;
}

// ---- between steps ----

void OutsideTrainer::follow(Replica& replica) {
  start_ = {};
  view_.follow(replica, parallel());
}

Result<void> OutsideTrainer::restore(std::span<const float> residual, BytesView local) {
  std::size_t size = 0;
  for (const std::span<std::uint8_t> one : local_) size += one.size();
  if (residual.size() != layout_.params()) return Error{Errc::corrupt, "its residual is of another size"};
  if (local.size() != size) return Error{Errc::corrupt, "its local buffers are of another size"};
  for (const std::span<std::uint8_t> one : local_) {
    std::copy_n(local.begin(), one.size(), one.begin());
    local = local.subspan(one.size());
  }
  compressor_->restore_residual(residual);
  return {};
}

MemoryUse OutsideTrainer::memory() const {
  MemoryUse use;
  use.view = view_.view_bytes();
  use.gradient = capacity_bytes(written_);
  use.residual = compressor_->residual_bytes();
  use.entries = compressor_->entry_bytes() + view_.entry_bytes();
  return use;
}

void OutsideTrainer::set_parallel(Parallel* parallel) {
  compressor_->set_parallel(parallel);
  codec_.parallel = parallel;
}

// ---- on the thread of the loop ----

StepResult OutsideTrainer::step(const StepPlan& plan) {
  StepResult result;
  result.held = plan.hold;
  result.period = plan.period;
  result.samples = static_cast<std::uint32_t>(std::min<std::uint64_t>(work_.samples, UINT32_MAX));
  result.loss = work_.loss;
  const double steps = std::max<std::uint32_t>(work_.steps, 1);  // what is sent for a step of the loop stays
  work_ = {};
  gather();
  compressor_->set_density(std::min(plan.density * steps, density_max));
  const Result<void> absorbed = compressor_->absorb(written_, result.update);
  remember_written();
  if (!absorbed) {
    result.failure = absorbed.error().text;
    return result;
  }
  if (plan.hold)
    compressor_->withdraw(result.update);
  else if (auto encoded = encode(plan.peers, result); !encoded)
    result.failure = encoded.error().text;
  show(&result.update);
  if (plan.survey) result.compression = compressor_->stats();
  local_copy_.clear();
  for (const std::span<std::uint8_t> one : local_) local_copy_.insert(local_copy_.end(), one.begin(), one.end());
  return result;
}

void OutsideTrainer::catch_up() {
  gather();
  std::vector<std::uint32_t> index;
  std::vector<float> change;
  for (std::uint32_t i = 0; i < written_.size(); ++i) {
    if (written_[i] != 0) {
      index.push_back(i);
      change.push_back(written_[i]);
    }
    if (index.size() < stretch_params && i + 1 < written_.size()) continue;
    compressor_->add(index, change);
    index.clear();
    change.clear();
  }
  remember_written();
  show(nullptr);
}

void OutsideTrainer::load_shared() {
  compressor_->clear_residual();
  show_all();
}

// written_ becomes x less what it was.
void OutsideTrainer::gather() {
  each_piece(layout_, parallel(), [&](std::size_t t, std::uint32_t begin, std::uint32_t end) {
    float* const written = written_.data() + layout_.tensors()[t].offset;
    with_words(tensors_[t], [&](auto form, auto* words) {
      for (std::uint32_t i = begin; i < end; ++i) written[i] = form.read(words[i]) - written[i];
    });
  });
}

void OutsideTrainer::remember_written() {
  each_piece(layout_, parallel(), [&](std::size_t t, std::uint32_t begin, std::uint32_t end) {
    float* const written = written_.data() + layout_.tensors()[t].offset;
    with_words(tensors_[t], [&](auto form, auto* words) {
      for (std::uint32_t i = begin; i < end; ++i) written[i] = form.read(words[i]);
    });
  });
}

Result<void> OutsideTrainer::encode(std::size_t peers, StepResult& result) {
  MeanEntries chosen(peers, *compressor_, layout_, result.update, codec_);
  auto payload = encoder_.encode(chosen);
  if (!payload) return payload.error();
  result.payload = std::move(payload).value();
  return {};
}

// x follows w and r wherever they changed. `sent` is not in w yet.
void OutsideTrainer::show(const compress::SparseUpdate* sent) {
  if (view_.everywhere()) show_all();
  for (const compress::SharedUpdate& update : view_.changed()) show_at(*update, false);
  view_.seen();
  if (sent != nullptr) show_at(*sent, true);
}

void OutsideTrainer::show_all() {
  const std::span<const float> view = view_.values(), drift = compressor_->residual();
  each_piece(layout_, parallel(), [&](std::size_t t, std::uint32_t begin, std::uint32_t end) {
    const std::uint32_t offset = layout_.tensors()[t].offset;
    with_words(tensors_[t], [&](auto form, auto* words) {
      for (std::uint32_t i = begin; i < end; ++i) {
        words[i] = form.word(view[offset + i] + drift[offset + i]);
        written_[offset + i] = form.read(words[i]);
      }
    });
  });
}

// x follows at the entries of the update. `on_top`: the update is not in the view yet, so its changes are added.
void OutsideTrainer::show_at(const compress::SparseUpdate& update, bool on_top) {
  const std::span<const float> view = view_.values(), drift = compressor_->residual();
  std::size_t t = 0;
  for (const compress::StepRun& run : compress::step_runs(layout_, update)) {
    const float worth = on_top ? static_cast<float>(run.step) * view_.unit() : 0.0f;
    for (std::size_t e = run.first; e < run.first + run.count;) {
      while (update.index[e] - layout_.tensors()[t].offset >= layout_.tensors()[t].size) ++t;
      const TensorInfo& info = layout_.tensors()[t];
      with_words(tensors_[t], [&](auto form, auto* words) {
        for (; e < run.first + run.count && update.index[e] - info.offset < info.size; ++e) {
          const std::uint32_t i = update.index[e];
          const float value = view[i] + drift[i] + (update.negative[e] != 0 ? -worth : worth);
          words[i - info.offset] = form.word(value);
          written_[i] = form.read(words[i - info.offset]);
        }
      });
    }
  }
}

}  // namespace rumor
