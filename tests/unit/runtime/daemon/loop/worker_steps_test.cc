// Steps on the daemon's own thread: results come on the event loop, and the trainer is left alone once that is over.
#include "runtime/daemon/loop/worker_steps.h"

#include <asio/executor_work_guard.hpp>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <thread>
#include <vector>

namespace rumor::daemon {

namespace {

// Only steps, each of 20 ms.
class SlowTrainer final : public Trainer {
 public:
  std::atomic<int> begun = 0, ended = 0;

  StepResult step(const StepPlan& plan) override {
    ++begun;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ++ended;
    StepResult result;
    result.period = plan.period;
    return result;
  }

  const ParamLayout& layout() const override { return layout_; }
  LargeVector<std::int32_t> initial_weights() const override { return {}; }
  void follow(Replica&) override {}
  compress::FloatView view() override { return {}; }
  std::span<const float> residual() const override { return {}; }
  Bytes optimizer_state() const override { return {}; }
  Result<void> restore(std::span<const float>, BytesView) override { return {}; }
  compress::CompressorStats compression() const override { return {}; }
  MemoryUse memory() const override { return {}; }
  void set_parallel(Parallel*) override {}
  Parallel& parallel() override { return serial_; }
  models::Evaluation evaluate(std::span<const float>, std::uint32_t) override { return {}; }

 private:
  ParamLayout layout_;
  Serial serial_;
};

struct Loop final : StepEvents {
  std::vector<std::uint64_t> periods;
  std::thread::id thread;

  void on_step_done(StepResult result, Time begin, Time end) override {
    BOOST_TEST((end - begin >= std::chrono::milliseconds(20)));
    periods.push_back(result.period);
    thread = std::this_thread::get_id();
  }
  void on_checkpoint_asked() override {}
  void on_finish_asked() override {}
  void on_stop_asked() override {}
};

StepPlan plan_of(std::uint64_t period) {
  StepPlan plan;
  plan.period = period;
  return plan;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(worker_steps)

BOOST_AUTO_TEST_CASE(results_come_on_the_loop) {
  asio::io_context io;
  const auto more_to_come = asio::make_work_guard(io);
  Worker worker(io);
  SlowTrainer trainer;
  Loop loop;
  WorkerSteps steps(worker, trainer);
  steps.connect(loop, {});
  for (const std::uint64_t period : {4u, 5u}) {
    steps.offer(plan_of(period));
    io.run_one();
  }
  BOOST_TEST(loop.periods == (std::vector<std::uint64_t>{4, 5}), boost::test_tools::per_element());
  BOOST_TEST((loop.thread == std::this_thread::get_id()));
  steps.disconnect();
}

// A run can end while a step is under way: the peer was refused, or the replica diverged. Who then takes the trainer
// must have it alone.
BOOST_AUTO_TEST_CASE(no_step_is_under_way_after_disconnect) {
  for (int delay_ms = 0; delay_ms < 30; delay_ms += 3) {
    asio::io_context io;
    Worker worker(io);
    SlowTrainer trainer;
    Loop loop;
    WorkerSteps steps(worker, trainer);
    steps.connect(loop, {});
    steps.offer(plan_of(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
    steps.disconnect();
    BOOST_TEST(trainer.begun == trainer.ended);
    BOOST_TEST(loop.periods.empty());
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::daemon
