// OutsideTrainer: a training loop of another program as a trainer: PyTorch, through runtime/bridge/rumor.h.
//
// The loop trains weights x of its own, in its own memory, with its own optimizer. x = w + r: w the shared weights, r
// the drift, the loop's changes that are not sent yet. A step adds to r the loop's changes of x since the last one,
// chooses the k largest |r|, and sends each of them as t, the least of their magnitudes. t leaves the drift, and the
// shared weight moves by t / peers.
//
// So the shared weights move by the mean of the live peers' changes, as in local SGD (Stich 2019) and as with averaged
// gradients: the loop's learning rate is right for any number of peers, and a single peer trains as if it were alone.
// The built-in models compute at w and divide the learning rate instead (model_trainer.h). An optimizer that is not
// ours, Adam above all, needs to see its own changes at once.
//
// Changes of other peers are written into x between two steps of the loop, only where they are, so x follows without a
// pass over all of it. x may be bfloat16: the drift is kept in floats, so nothing is lost below x's resolution.
//
// With the first step of a flush the loop has ended: what it changes in x afterwards is dropped, and x is written once
// more, by load_shared().
//
// Threads: as runtime/training/trainer.h; told() and step() on the thread of the loop, which must not touch x
// meanwhile. Memory: two floats a parameter, the drift and x as of the last step; one float in a flush. w is the
// replica's.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/param_layout.h"
#include "runtime/run/run_config.h"
#include "runtime/training/outside/buffer_means.h"
#include "runtime/training/outside/followed_view.h"
#include "runtime/training/outside/outside_tensors.h"
#include "runtime/training/outside/undone_changes.h"
#include "runtime/training/trainer.h"
#include "runtime/training/update_encoder.h"

namespace rumor {

// The loop's work since the last step().
struct OutsideWork {
  std::uint32_t steps = 0;    // of its optimizer
  std::uint64_t samples = 0;
  double loss = 0;            // mean; 0: it does not say
};

class OutsideTrainer final : public Trainer {
 public:
  // `start`: the shared weights before any update; empty where the node has them (NodeOptions::start). `local`: what
  // only this loop uses, such as running statistics of BatchNorm; kept in checkpoints, never sent. All memory outlives
  // this object.
  // Errors: Errc::usage: a budget in bytes, which this trainer does not know; Errc::limit: a value of x that is not
  // finite or beyond the grid.
  // Requires: tensors, and start if there is any, as the layout has them.
  static Result<std::unique_ptr<OutsideTrainer>> create(const RunConfig& config, const ParamLayout& layout,
                                                        std::vector<OutsideTensor> tensors,
                                                        std::vector<std::span<std::uint8_t>> local,
                                                        LargeVector<std::int32_t> start);

  const ParamLayout& layout() const override { return layout_; }
  LargeVector<std::int32_t> initial_weights() const override { return start_; }
  void follow(Replica& replica) override;
  void expect(Replica&, InFlightView&) override {}  // x is the weights alone
  void lift(Replica&, InFlightView&) override {}
  void outlive(Replica& replica) override { view_.outlive(replica); }
  bool computes_at_shared_weights() const override { return false; }
  bool flushes() const override { return true; }
  std::span<const float> residual() const override { return compressor_->residual(); }
  // The local memory, as of the last step().
  Bytes optimizer_state() const override { return local_copy_; }
  Bytes buffers() const override { return local_copy_.empty() ? Bytes() : means_.report(local_copy_); }
  void take_buffers(const NodeBuffers& reports, bool at_the_end) override;
  Result<void> restore(std::span<const float> residual, BytesView local) override;
  compress::CompressorStats compression() const override { return compressor_->stats(); }
  MemoryUse memory() const override;
  void set_parallel(Parallel* parallel) override;
  Parallel& parallel() override { return codec_.parallel != nullptr ? *codec_.parallel : alone_; }
  bool evaluates() const override { return false; }
  models::Evaluation evaluate(std::span<const float>, std::uint32_t) override { return {}; }

  // Before follow(): buffers in the local memory that all peers share as means. Errors: Errc::limit.
  Result<void> share(std::vector<SharedBuffer> buffers);
  // Before follow(), by a peer that lacks the weights: lets go of x as of the last step, until x is written. The
  // memory is free for the snapshot that the peer takes meanwhile. Drops what the loop has changed in x by then.
  void await_weights() { written_ = LargeVector<float>(); }
  // Before step(): the work that the step sends.
  void told(const OutsideWork& work) { work_ = work; }
  StepResult step(const StepPlan& plan) override;
  // x becomes the shared weights and the drift, without a step: changes of the loop since the last one are kept.
  void catch_up();
  // Before the first step(), for a peer that joins late: its shared buffers become the means of those who have trained,
  // and are no report of its own until it trains. Not after restore(): a checkpoint has the peer's own.
  void begin_with_means();
  // x becomes the shared weights alone, and shared buffers the means: what all peers hold. Drops the drift.
  void load_shared();
  // The same until take_back(). Requires: catch_up(); no step() between.
  void show_shared();
  // x becomes what it was at the end of the last step() or catch_up(): changes of the loop since then are dropped.
  void take_back();
  // The next line about the loop that its user should read; none if there is nothing new.
  std::optional<std::string> take_warning();

 private:
  OutsideTrainer(const RunConfig& config, const ParamLayout& layout, std::vector<OutsideTensor> tensors,
                 std::vector<std::span<std::uint8_t>> local, LargeVector<std::int32_t> start);
  float gather();
  void watch(const OutsideWork& work, float largest);
  void send(const StepPlan& plan, const OutsideWork& work, StepResult& result);
  void send_last(const StepPlan& plan, StepResult& result);
  void send_rest(const StepPlan& plan, StepResult& result);
  void hand_out(const StepPlan& plan, StepResult& result);
  void read_local(Bytes& all) const;
  void write_local(BytesView all);
  void show_means();
  void undo(StepResult& result);
  void remember_written();
  Result<void> encode(std::size_t peers, StepResult& result);
  void show(const compress::SparseUpdate* sent);
  void show_all();
  template <class Drift>
  void write_all(Drift&& drift);
  void show_at(const compress::SparseUpdate& update, bool on_top);

  ParamLayout layout_;
  std::vector<OutsideTensor> tensors_;
  std::vector<std::span<std::uint8_t>> local_;
  LargeVector<std::int32_t> start_;  // let go with the first follow()
  std::unique_ptr<compress::Compressor> compressor_;
  compress::CodecOptions codec_;
  UpdateEncoder encoder_;
  Serial alone_;
  OutsideWork work_;
  Bytes local_copy_;
  BufferMeans means_;
  NodeBuffers reports_;            // of all peers
  bool restored_ = false;
  bool unlike_buffers_ = false, unlike_buffers_told_ = false;  // another peer shares other buffers
  Bytes own_buffers_;              // the local memory as it was before show_shared(); else empty
  FollowedView view_;           // w; x has yet to follow it where it changed
  std::uint32_t skipped_ = 0;      // changes in a row that were undone
  std::uint64_t still_steps_ = 0;  // of the loop, since x changed
  bool still_told_ = false;
  UndoneChanges undone_;
  std::vector<std::string> warnings_;
  // x as of the last step; within one, what changed in x since. Empty: await_weights(), or the loop has ended.
  LargeVector<float> written_;
  bool loop_has_ended_ = false;
};

}  // namespace rumor
