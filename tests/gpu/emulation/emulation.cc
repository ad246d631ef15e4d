// The scheduler of the emulation: which thread of a block runs next, and who waits for whom.
#include "tests/gpu/emulation/emulation.h"

#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/base/prng.h"
#include "tests/gpu/emulation/fiber.h"

// This file is about the machine itself, not its names.
#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim

namespace rumor::gpu::emulation {

Extent thread_index, block_index, block_extent, grid_extent;

namespace {

constexpr unsigned lanes = 32, threads_max = 1024;

enum class State : std::uint8_t { ready, at_block, at_warp, done };

// Whose turn it is: who was ready first, any of them, or who was ready last. With the last, one warp runs ahead as far
// as barriers let it while the others have not moved.
enum class Turn : std::uint8_t { first, any, last };

struct Thread {
  Fiber fiber;
  State state = State::done;
  unsigned meetings = 0;  // warp instructions it has come to
};

// Lanes are at most one meeting apart, so two sets of values do.
struct Warp {
  std::uint64_t values[2][lanes] = {};
  Meeting kind = Meeting::block;
  unsigned arrived = 0;
};

struct Block {
  std::vector<std::unique_ptr<Thread>> threads;
  std::vector<Warp> warps;
  std::vector<unsigned> ready;
  unsigned size = 0, running = 0, at_barrier = 0, left = 0;
  std::size_t next = 0;  // of ready, in turn
  const std::function<void()>* kernel = nullptr;
  Prng prng{0};
  Turn turn = Turn::first;

  void make_ready(unsigned first, unsigned count) {
    const std::size_t from = ready.size();
    for (unsigned t = first; t < first + count; ++t) {
      threads[t]->state = State::ready;
      ready.push_back(t);
    }
    if (turn != Turn::first) prng.shuffle(std::span<unsigned>(ready).subspan(from));
  }

  // Requires: some are ready.
  unsigned take_ready() {
    if (turn == Turn::any) std::swap(ready[next + prng.below(ready.size() - next)], ready.back());
    const unsigned taken = turn == Turn::first ? ready[next++] : ready.back();
    if (turn != Turn::first) ready.pop_back();
    if (next < 4096) return taken;
    ready.erase(ready.begin(), ready.begin() + static_cast<std::ptrdiff_t>(next));
    next = 0;
    return taken;
  }
};

Block block;

std::string name_of(State state) {
  switch (state) {
    case State::ready:
      return "ready";
    case State::at_block:
      return "at __syncthreads";
    case State::at_warp:
      return "in a warp instruction";
    case State::done:
      return "gone";
  }
  return "?";
}

[[noreturn]] void stuck() {
  std::string text = "threads wait for others that do not come: block " + std::to_string(block_index.x);
  for (unsigned t = 0; t < block.size; ++t)
    if (t == 0 || block.threads[t]->state != block.threads[t - 1]->state)
      text += ", from thread " + std::to_string(t) + " on " + name_of(block.threads[t]->state);
  throw std::runtime_error(text);
}

void wait_as(State state) {
  block.threads[block.running]->state = state;
  Fiber::give_way();
}

void run_block() {
  block.warps.assign((block.size + lanes - 1) / lanes, Warp{});
  block.ready.clear();
  block.next = 0;
  block.at_barrier = 0;
  block.left = block.size;
  for (unsigned t = 0; t < block.size; ++t) {
    block.threads[t]->meetings = 0;
    block.threads[t]->fiber.start([] { (*block.kernel)(); });
  }
  block.make_ready(0, block.size);
  while (block.left > 0) {
    if (block.next == block.ready.size()) stuck();
    block.running = block.take_ready();
    thread_index.x = block.running;
    Thread& thread = *block.threads[block.running];
    thread.fiber.resume();
    if (!thread.fiber.done()) continue;
    thread.state = State::done;
    --block.left;
  }
}

}  // namespace

void wait_for_block() {
  if (++block.at_barrier < block.size) return wait_as(State::at_block);
  block.at_barrier = 0;
  const unsigned self = block.running;
  block.make_ready(0, block.size);  // itself among them: it goes on when its turn comes
  block.threads[self]->state = State::ready;
  Fiber::give_way();
}

const std::uint64_t* exchange(Meeting kind, std::uint64_t value) {
  Thread& self = *block.threads[block.running];
  const unsigned warp_number = block.running / lanes, first = warp_number * lanes;
  Warp& warp = block.warps[warp_number];
  std::uint64_t* const values = warp.values[self.meetings++ & 1];
  values[block.running % lanes] = value;
  const bool mixed = warp.arrived != 0 && warp.kind != kind;
  warp.kind = kind;
  if (mixed || first + lanes > block.size) {  // never released: the scheduler says who is where
    wait_as(State::at_warp);
  } else if (++warp.arrived < lanes) {
    wait_as(State::at_warp);
  } else {
    warp.arrived = 0;
    block.make_ready(first, lanes);
    Fiber::give_way();
  }
  return values;
}

void run_grid(std::uint64_t blocks, unsigned threads, Order order, const std::function<void()>& kernel) {
  if (blocks == 0 || blocks > 0x7fff'ffff || threads == 0 || threads > threads_max)
    throw std::runtime_error("a grid that no GPU can run");
  while (block.threads.size() < threads) block.threads.push_back(std::make_unique<Thread>());
  block.size = threads;
  block.kernel = &kernel;
  block.turn = Turn::first;
  block.prng = Prng(order.seed);
  block_extent.x = threads;
  grid_extent.x = static_cast<unsigned>(blocks);
  std::vector<unsigned> sequence(blocks);
  std::iota(sequence.begin(), sequence.end(), 0u);
  if (order.seed != 0) block.prng.shuffle(std::span<unsigned>(sequence));
  for (const unsigned b : sequence) {
    block_index.x = b;
    if (order.seed != 0) block.turn = block.prng.chance(1, 2) ? Turn::any : Turn::last;
    run_block();
  }
}

}  // namespace rumor::gpu::emulation
