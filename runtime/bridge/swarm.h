// Swarm: one peer inside another program, as C++. rumor.h is the same for everybody, and the manual.
//
// Threads: as rumor.h. A thread of its own runs the event loop (runtime/daemon/loop/event_loop.h).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "runtime/bridge/device_tensors.h"
#include "runtime/daemon/loop/event_loop.h"
#include "runtime/daemon/loop/handover.h"
#include "runtime/daemon/loop/run_probe.h"
#include "runtime/run/run_identity.h"
#include "runtime/training/outside/outside_trainer.h"

namespace rumor::bridge {

class Swarm {
 public:
  // Errors: Errc::usage, Errc::not_found, Errc::io.
  // The family of a run whose model only the programs know.
  static constexpr std::string_view outside_family = "outside";

  static Result<std::unique_ptr<Swarm>> create(const std::string& run);
  // Ends the peer, without touching the program's memory.
  ~Swarm();

  Result<void> option(const std::string& name, const std::string& value);
  // `memory` is of the GPU with this number, or of this process.
  Result<void> parameter(TensorInfo info, OutsideTensor memory, std::optional<int> gpu);
  Result<void> local(std::span<std::uint8_t> memory, std::optional<int> gpu);
  // False: nobody could be reached in time.
  Result<bool> start(Duration patience);
  // Returns false if the peer has ended as planned.
  Result<bool> step(std::uint32_t samples, double loss);
  std::string status() const { return handover_.status_json(); }
  Result<void> checkpoint();
  // The program's memory becomes the shared weights, or those that it trains again. step() refuses to go on in between.
  Result<void> show_shared(bool shared);
  // The next step, or the leave, begins with the memory as the last one left it.
  void take_back() { undo_ = true; }
  Result<void> leave(Duration patience);
  // A start() or leave() under way, or the next leave(), waits for others no longer. Any thread.
  void interrupt() { handover_.interrupt(); }
  // The next event, as JSON; none if there is nothing new. Any thread.
  std::optional<std::string> event() { return handover_.take_event(); }
  // The next line that the program's user should read; none if there is nothing new.
  std::optional<std::string> warning();

  bool began() const { return began_; }                  // start() was called
  bool running() const { return thread_.joinable(); }  // and succeeded, and leave() was not called
  // Whether this is the process that made it.
  bool is_at_home() const;

 private:
  explicit Swarm(RunConfig config);
  Result<void> make_trainer();
  // How the run begins.
  struct Start {
    ParamLayout layout;
    LargeVector<std::int32_t> weights;  // empty: those of training_.start
  };
  Result<Start> start_outside(ParamLayout layout);
  Result<std::optional<StartNote>> note_of_run();
  Error other_weights(const std::vector<RunPart>& parts) const;
  bool wait_for_weights(Duration patience);
  Result<Start> start_built_in(const ParamLayout& layout);
  void run();
  Result<void> train(const StepPlan& plan);
  void end(Duration patience, bool with_memory);
  Result<void> reason() const;

  daemon::PeerOptions options_;
  double overhead_ = 0;  // 0: by the model's size
  std::string frozen_;       // names what the model has beside the parameters
  bool takes_weights_ = false;  // the run's, whatever the program's are
  bool lacks_weights_ = false;  // and those are another peer's, or in a checkpoint
  Duration patience_{};
  daemon::FoundRun asked_;   // a seed's, if takes_weights_ and there was one to ask
  bool shows_shared_ = false;
  bool undo_ = false;        // the program's changes since the last step are to be taken back
  bool grid_given_ = false;  // compress.grid_bits, by the program
  bool density_given_ = false;   // and compress.density
  std::optional<double> steps_;  // of all peers together, until the run ends
  std::vector<TensorInfo> infos_;
  std::vector<OutsideTensor> tensors_;
  DeviceTensors on_gpus_;
  std::vector<std::span<std::uint8_t>> local_;
  bool began_ = false;
  pid_t home_;

  daemon::Training training_;          // until the peer has it
  OutsideTrainer* trainer_ = nullptr;  // the peer's; ours while we have the turn; none after leave()
  daemon::Handover handover_;
  std::thread thread_;
  std::optional<Result<daemon::PeerEnd>> ended_;  // set by the thread, read once the handover is closed

  using Clock = std::chrono::steady_clock;
  Clock::time_point last_train_ = Clock::now();  // when it was over
  Clock::duration train_time_{};
  OutsideWork work_;                             // since then
  double loss_sum_ = 0;
};

}  // namespace rumor::bridge
