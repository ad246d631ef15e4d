#include "runtime/training/outside/outside_trainer.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <utility>

#include "runtime/base/grid_range.h"
#include "runtime/base/memory_bytes.h"
#include "runtime/base/text.h"

namespace rumor {

namespace {

constexpr std::uint32_t skipped_max = 10;       // changes in a row that are undone
constexpr std::uint64_t still_steps_max = 200;  // steps of the loop without a change

}  // namespace

OutsideTrainer::OutsideTrainer(const RunConfig& config, const ParamLayout& layout, std::vector<OutsideTensor> tensors,
                               std::vector<std::span<std::uint8_t>> local, LargeVector<std::int32_t> start)
    : layout_(layout),
      tensors_(std::move(tensors)),
      local_(std::move(local)),
      start_(std::move(start)),
      view_(config.grid_bits, layout_.params()) {
  const compress::CompressorOptions options{
      .density = config.density_for(1), .grid_bits = config.grid_bits, .emit = config.emit, .scope = config.scope};
  compressor_ = std::make_unique<compress::Compressor>(layout_, options);
  written_.assign(layout_.params(), 0.0f);
}

Result<std::unique_ptr<OutsideTrainer>> OutsideTrainer::create(const RunConfig& config, const ParamLayout& layout,
                                                               std::vector<OutsideTensor> tensors,
                                                               std::vector<std::span<std::uint8_t>> local,
                                                               LargeVector<std::int32_t> start) {
  RUMOR_CHECK(tensors.size() == layout.tensors().size() && (start.empty() || start.size() == layout.params()));
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

// ---- between steps ----

void OutsideTrainer::follow(Replica& replica) {
  start_ = LargeVector<std::int32_t>();  // {} would keep its memory
  view_.follow(replica, parallel());
  if (loop_has_ended_) view_.seen();  // x follows no more
}

Result<void> OutsideTrainer::restore(std::span<const float> residual, BytesView local) {
  std::size_t size = 0;
  for (const std::span<std::uint8_t> one : local_) size += one.size();
  if (residual.size() != layout_.params()) return Error{Errc::corrupt, "its residual is of another size"};
  if (local.size() != size) return Error{Errc::corrupt, "its local buffers are of another size"};
  write_local(local);
  restored_ = true;
  compressor_->restore_residual(residual);
  return {};
}

MemoryUse OutsideTrainer::memory() const {
  MemoryUse use;
  use.weights = view_.weight_bytes() + capacity_bytes(start_);
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
  result.period = plan.period;
  const OutsideWork work = std::exchange(work_, {});
  if (loop_has_ended_) {
    send_rest(plan, result);
    return result;
  }
  result.loss = work.loss;
  if (written_.empty()) catch_up();
  const float largest = gather();
  if (!(largest < range_of(view_.grid_bits()))) {
    undo(result);
  } else {
    skipped_ = 0;
    result.samples = static_cast<std::uint32_t>(std::min<std::uint64_t>(work.samples, UINT32_MAX));
    watch(work, largest);
    if (plan.flush)
      send_last(plan, result);
    else
      send(plan, work, result);
  }
  if (plan.survey) result.compression = compressor_->stats();
  read_local(local_copy_);
  return result;
}

// Reuses the memory of `all`.
void OutsideTrainer::read_local(Bytes& all) const {
  all.clear();
  for (const std::span<std::uint8_t> one : local_) all.insert(all.end(), one.begin(), one.end());
}

void OutsideTrainer::write_local(BytesView all) {
  for (const std::span<std::uint8_t> one : local_) {
    std::copy_n(all.begin(), one.size(), one.begin());
    all = all.subspan(one.size());
  }
}

// ---- buffers ----

Result<void> OutsideTrainer::share(std::vector<SharedBuffer> buffers) {
  Bytes local;
  read_local(local);
  auto means = BufferMeans::create(std::move(buffers), local);
  if (!means) return means.error();
  means_ = std::move(means).value();
  return {};
}

// The last checkpoint holds what all peers hold, as the weights in it.
void OutsideTrainer::take_buffers(const NodeBuffers& reports, bool at_the_end) {
  reports_ = reports;
  for (const auto& [node, report] : reports) unlike_buffers_ |= !means_.fits(report.values);
  if (at_the_end && !local_copy_.empty()) means_.show(reports_, local_copy_);
}

void OutsideTrainer::show_means() {
  Bytes shown;
  read_local(shown);
  means_.show(reports_, shown);
  write_local(shown);
}

void OutsideTrainer::begin_with_means() {
  if (restored_ || reports_.empty()) return;
  show_means();
  Bytes local;
  read_local(local);
  means_.begin_at(local);
}

void OutsideTrainer::send(const StepPlan& plan, const OutsideWork& work, StepResult& result) {
  // An update of several steps has the entries of all of them.
  compressor_->set_density(std::min(plan.density * std::max<std::uint32_t>(work.steps, 1), density_max));
  const Result<void> absorbed = compressor_->absorb(written_, result.update);
  remember_written();
  if (!absorbed) {
    result.failure = absorbed.error().text;
    return;
  }
  hand_out(plan, result);
  show(&result.update);
}

// The first update of a flush. The loop's last changes join the drift, and x as of the last step is let go before the
// entries take room.
void OutsideTrainer::send_last(const StepPlan& plan, StepResult& result) {
  compressor_->set_entries(1);
  if (const Result<void> absorbed = compressor_->absorb(written_, result.update); !absorbed) {
    remember_written();
    result.failure = absorbed.error().text;
    return;
  }
  compressor_->withdraw(result.update);
  loop_has_ended_ = true;
  written_ = LargeVector<float>();
  send_rest(plan, result);
}

// The next update of a flush.
void OutsideTrainer::send_rest(const StepPlan& plan, StepResult& result) {
  RUMOR_CHECK(plan.flush);
  compressor_->set_density(plan.density);
  if (const Result<void> absorbed = compressor_->absorb_nothing(result.update); !absorbed)
    result.failure = absorbed.error().text;
  else
    hand_out(plan, result);
}

// The update that the compressor has chosen, or nothing.
void OutsideTrainer::hand_out(const StepPlan& plan, StepResult& result) {
  result.held = plan.hold || (plan.flush && result.update.index.empty());
  if (result.held)
    compressor_->withdraw(result.update);
  else if (auto encoded = encode(plan.peers, result); !encoded)
    result.failure = encoded.error().text;
}

// A change that is not finite, or no weight could hold: x becomes what it was before, and nothing is sent.
void OutsideTrainer::undo(StepResult& result) {
  result.held = result.undone = true;
  take_back();
  if (++skipped_ == 1)
    warnings_.push_back("a step changed weights to values that are not finite numbers or far too large; the change was "
                        "undone and not sent, but the optimizer may still hold it");
  if (skipped_ == skipped_max)
    result.failure = str(skipped_max, " changes in a row were not finite numbers or far too large; the loop has ",
                         "diverged: try a smaller learning rate, or clip the gradients");
}

// Notices a loop whose changes do not arrive here, and one that takes back those of others.
void OutsideTrainer::watch(const OutsideWork& work, float largest) {
  still_steps_ = largest > 0 ? 0 : still_steps_ + work.steps;
  if (still_steps_ >= still_steps_max && !still_told_) {
    still_told_ = true;
    warnings_.push_back(str("no weight has changed in the last ", still_steps_, " steps: does the optimizer have the ",
                            "parameters of the model that joined, and not of a copy?"));
  }
  if (unlike_buffers_ && !std::exchange(unlike_buffers_told_, true))
    warnings_.push_back("another peer's model has other buffers, or leaves others out (own_buffers): its running "
                        "statistics and the like are not in the means of this peer");
  undone_.look(written_);
  if (undone_.found())
    warnings_.push_back("the optimizer writes weights of its own over the changes of other peers, so this peer trains "
                        "alone: use one that keeps no copy of the parameters, or in Python rumor.join(optimizer=...)");
  if (undone_.found_jumps())
    warnings_.push_back("every few steps the training loop returns towards older weights that it keeps, and takes back "
                        "changes of other peers: let a torch optimizer keep them in its state, where join() finds "
                        "them, or do without");
}

std::optional<std::string> OutsideTrainer::take_warning() {
  if (warnings_.empty()) return std::nullopt;
  std::string first = std::move(warnings_.front());
  warnings_.erase(warnings_.begin());
  return first;
}

void OutsideTrainer::catch_up() {
  if (written_.empty()) {
    show_all();
    return view_.seen();
  }
  if (!(gather() < range_of(view_.grid_bits()))) return show_all();
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

void OutsideTrainer::take_back() {
  show_all();
  view_.seen();
  if (!own_buffers_.empty()) write_local(std::exchange(own_buffers_, {}));
}

void OutsideTrainer::show_shared() {
  write_all([](std::uint32_t) { return 0.0f; });
  read_local(own_buffers_);
  show_means();
}

void OutsideTrainer::load_shared() {
  compressor_->clear_residual();
  show_all();
  show_means();
}

// written_ becomes x less what it was. Returns the largest magnitude in it; not a number where there is any.
float OutsideTrainer::gather() {
  std::atomic<std::uint32_t> largest = 0;  // magnitude bits: they order as the magnitudes do, and beyond come NaNs
  each_piece(layout_, parallel(), [&](std::size_t t, std::uint32_t begin, std::uint32_t end) {
    float* const written = written_.data() + layout_.tensors()[t].offset;
    std::uint32_t here = 0;
    with_words(tensors_[t], [&](auto form, auto* words) {
      for (std::uint32_t i = begin; i < end; ++i) {
        written[i] = form.read(words[i]) - written[i];
        here = std::max(here, std::bit_cast<std::uint32_t>(written[i]) & 0x7fff'ffff);
      }
    });
    for (std::uint32_t seen = largest; seen < here && !largest.compare_exchange_weak(seen, here);) {
    }
  });
  return std::bit_cast<float>(largest.load());
}

void OutsideTrainer::remember_written() {
  each_piece(layout_, parallel(), [&](std::size_t t, std::uint32_t begin, std::uint32_t end) {
    float* const written = written_.data() + layout_.tensors()[t].offset;
    with_words(tensors_[t], [&](auto form, auto* words) {
      for (std::uint32_t i = begin; i < end; ++i) written[i] = form.read(words[i]);
    });
  });
}

// The shared weights move by the mean over the peers.
Result<void> OutsideTrainer::encode(std::size_t peers, StepResult& result) {
  compress::CompressorEntries chosen(*compressor_, layout_, result.update, codec_,
                                     {.peers = static_cast<std::int64_t>(peers),
                                      .guard = compress::RangeGuard(view_.values())});
  return encoder_.encode(chosen, result);
}

// x follows w and r wherever they changed. `sent` is not in w yet.
void OutsideTrainer::show(const compress::SparseUpdate* sent) {
  if (view_.everywhere()) show_all();
  for (const compress::SharedUpdate& update : view_.changed()) show_at(*update, false);
  view_.seen();
  if (sent == nullptr) return;
  undone_.leave_out(sent->index);  // what leaves the drift here has left x above, and comes back now
  show_at(*sent, true);
}

void OutsideTrainer::show_all() {
  write_all([drift = compressor_->residual()](std::uint32_t i) { return drift[i]; });
}

// x becomes w and what drift(position) returns.
template <class Drift>
void OutsideTrainer::write_all(Drift&& drift) {
  if (!loop_has_ended_) written_.resize(layout_.params());
  const compress::WeightView view = view_.values();
  each_piece(layout_, parallel(), [&](std::size_t t, std::uint32_t begin, std::uint32_t end) {
    const std::uint32_t offset = layout_.tensors()[t].offset;
    with_words(tensors_[t], [&](auto form, auto* words) {
      for (std::uint32_t i = begin; i < end; ++i) {
        words[i] = form.word(view[offset + i] + drift(offset + i));
        if (!written_.empty()) written_[offset + i] = form.read(words[i]);
      }
    });
  });
}

// x follows at the entries of the update. `on_top`: the update is not in the view yet, so its changes are added.
void OutsideTrainer::show_at(const compress::SparseUpdate& update, bool on_top) {
  const compress::WeightView view = view_.values();
  const std::span<const float> drift = compressor_->residual();
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
          const float before = written_[i];
          words[i - info.offset] = form.word(value);
          written_[i] = form.read(words[i - info.offset]);
          if (!on_top) undone_.wrote(i, before, written_[i]);  // an own entry leaves x, and is soon learned again
        }
      });
    }
  }
}

}  // namespace rumor
