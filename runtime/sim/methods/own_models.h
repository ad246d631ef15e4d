// OwnModels: peers of which each keeps a model of its own and knows public copies of its neighbours'
// (sim/methods/public_copies.h, sim/methods/neighbour_graph.h): what codistillation is built on. Whole peers that
// average (runtime/neighbourhood.h) do the same through the protocol.
//
// Nobody waits for anybody. A peer takes step after step; between two of them it says what it has to say and takes in
// what has arrived. One that leaves (found out when its step would end) loses its model, and its neighbours link to
// others. When it comes back it links anew, begins with the first public copy that arrives, and sends that on as its
// own.
//
// Thread: one owner. Memory: of each peer its model, its optimizer's moments, and the copies.
#pragma once

#include <memory>
#include <vector>

#include "runtime/sim/event_queue.h"
#include "runtime/sim/methods/method_record.h"
#include "runtime/sim/methods/neighbour_graph.h"
#include "runtime/sim/methods/public_copies.h"

namespace rumor::sim {

class OwnModels {
 public:
  // `degree`: of the graph.
  OwnModels(const MethodSetting& in, std::uint32_t degree);
  virtual ~OwnModels() = default;
  OwnModels(const OwnModels&) = delete;
  OwnModels& operator=(const OwnModels&) = delete;

  Result<SimResult> run();

  // A byte budget is of no use here: Errc::usage.
  static Result<void> check(const RunConfig& config);

 protected:
  struct Peer {
    std::vector<float> weights;  // empty: away, or not yet back
    std::unique_ptr<models::Optimizer> optimizer;
    Duration step{0};  // what the one under way takes; 0: there is none
    bool here = true;
  };

  // Before a step: what has arrived has been taken in.
  virtual void begin(std::size_t peer) = 0;
  // What a step costs.
  virtual Duration step_time(std::size_t peer) { return learners_.step_time(peer); }
  // The gradient that a step of this peer follows; [params].
  virtual void gradient(std::size_t peer, std::span<float> out) = 0;
  // After a step. Whether it has something to tell.
  virtual bool has_news(std::size_t peer) = 0;
  // What the run's user gets: evaluated for the curve and at the end.
  virtual models::Evaluation evaluate() = 0;
  // What else there is to say of the end.
  virtual void report(SimResult& result) = 0;

  double progress() const { return static_cast<double>(samples_) / static_cast<double>(config_.samples); }
  // Those who have a model, ascending.
  std::vector<std::size_t> training() const;

  const RunConfig& config_;
  Learners& learners_;
  MethodRecord record_;
  NeighbourGraph graph_;
  PublicCopies copies_;
  std::vector<Peer> peers_;

 private:
  Result<void> turn(std::size_t peer);
  Result<void> finish_step(std::size_t peer);
  void leave(std::size_t peer);
  void come_back(std::size_t peer);

  const ClusterOptions& options_;
  const Absences& absences_;
  EventQueue<std::size_t> turns_;  // each peer has one coming
  std::vector<float> gradient_;
  TimePoint now_{};
  std::uint64_t samples_ = 0, steps_ = 0, told_ = 0;
};

}  // namespace rumor::sim
