// The seam: what is said where there is no plugin, driver, GPU or memory; and that the emulation finds kernels that are
// wrong, so that its silence means something.
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "gpu/compress/compressor.h"
#include "gpu/device/plugin.h"
#include "tests/gpu/target.h"
#include "tests/unit/compress/generated.h"

#include "tests/gpu/emulation/emulation.h"

using namespace rumor;
using namespace rumor::gpu;

BOOST_AUTO_TEST_SUITE(gpu_seam)

namespace {

bool has(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

// Each thread hands its number to a neighbour in another warp through shared memory.
void pass_on(bool wait, std::vector<unsigned>& got) {
  __shared__ unsigned numbers[128];
  numbers[threadIdx.x] = threadIdx.x + 1000 * blockIdx.x;
  if (wait) __syncthreads();
  got[blockIdx.x * 128 + threadIdx.x] = numbers[(threadIdx.x + 77) % 128];
}

std::vector<unsigned> passed_on(bool wait, std::uint64_t order) {
  std::vector<unsigned> got(4 * 128);
  emulation::run_grid(4, 128, {order}, [&] { pass_on(wait, got); });
  return got;
}

std::string what_goes_wrong(unsigned threads, const std::function<void()>& kernel) {
  try {
    emulation::run_grid(1, threads, {1}, kernel);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_barrier_that_is_missing_shows) {
  const std::vector<unsigned> right = passed_on(true, 0);
  for (std::uint64_t order = 1; order < 20; ++order) BOOST_TEST((passed_on(true, order) == right));
  int wrong = 0;
  for (std::uint64_t order = 0; order < 20; ++order) wrong += passed_on(false, order) != right;
  BOOST_TEST(wrong == 20);
}

BOOST_AUTO_TEST_CASE(threads_that_do_not_come_are_missed) {
  BOOST_TEST(has(what_goes_wrong(64,
                                 [] {
                                   if (threadIdx.x != 5) __syncthreads();
                                 }),
                 "do not come"));
  BOOST_TEST(has(what_goes_wrong(64,
                                 [] {
                                   if (threadIdx.x < 40) __ballot_sync(~0u, 1);
                                 }),
                 "do not come"));
  BOOST_TEST(has(what_goes_wrong(20, [] { __ballot_sync(~0u, 1); }), "do not come"));
  const auto split = [] { threadIdx.x % 2 == 0 ? __syncthreads() : static_cast<void>(__ballot_sync(~0u, 1)); };
  BOOST_TEST(has(what_goes_wrong(32, split), "do not come"));
  BOOST_TEST(has(what_goes_wrong(2048, [] {}), "no GPU can run"));
  BOOST_TEST(what_goes_wrong(64, [] {
               if (threadIdx.x < 32) __ballot_sync(~0u, 1);
             }) == "nothing");
}

BOOST_AUTO_TEST_CASE(warp_instructions_give_what_cuda_gives) {
  const std::uint32_t thirds[] = {0x4924'9249, 0x9249'2492, 0x2492'4924};
  for (std::uint64_t order = 0; order < 5; ++order) {
    int wrong = 0;
    emulation::run_grid(3, 96, {order}, [&] {
      const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
      wrong += __ballot_sync(~0u, lane % 3 == warp) != thirds[warp];
      wrong += __shfl_up_sync(~0u, lane, 5u) != (lane >= 5 ? lane - 5 : lane);
      wrong += __shfl_xor_sync(~0u, std::uint64_t{lane} << 40, 9u) != std::uint64_t{lane ^ 9u} << 40;
      wrong += (__any_sync(~0u, lane == 31) != 0) != true;
    });
    BOOST_TEST(wrong == 0);
  }
}

BOOST_AUTO_TEST_CASE(a_plugin_that_is_not_one_is_refused) {
  const Result<const GpuTable*> none = open_plugin("/no/such/librumor_cuda.so");
  BOOST_TEST_REQUIRE(!none.ok());
  BOOST_TEST((none.error().code == Errc::not_found));
  BOOST_TEST(has(none.error().text, "/no/such/librumor_cuda.so"));
  const Result<const GpuTable*> other = open_plugin("libm.so.6");
  BOOST_TEST_REQUIRE(!other.ok());
  BOOST_TEST((other.error().code == Errc::mismatch));
  BOOST_TEST(has(other.error().text, "needs version"));
}

// With a GPU this opens it; without one it must say what is missing. RUMOR_CUDA is set by the build.
BOOST_AUTO_TEST_CASE(the_plugin_of_this_build_says_what_is_there) {
  const Result<const GpuTable*> plugin = open_plugin();
#if RUMOR_HAVE_CUDA
  if (std::getenv("RUMOR_CUDA") == nullptr) {
    BOOST_TEST_MESSAGE("RUMOR_CUDA is not set: nothing is known of the plugin");
    return;
  }
  BOOST_TEST_REQUIRE(plugin.ok());
  BOOST_TEST(std::string((*plugin)->name) == "cuda");
  // Whether GPUs could be joined is known without any.
  ErrorText why{};
  Group* group = nullptr;
  if ((*plugin)->join(nullptr, 0, &group, &why) != Status::ok) {
    BOOST_TEST_MESSAGE(why.text);
    BOOST_TEST((has(why.text, "libnccl.so.2") && has(why.text, "; install NVIDIA's NCCL")));
  }
  const Result<std::unique_ptr<Gpu>> gpu = Gpu::open(**plugin, 0);
  if (gpu) return;
  BOOST_TEST_MESSAGE(gpu.error().text);
  BOOST_TEST(has(gpu.error().text, "no GPU can be used: "));
  BOOST_TEST((has(gpu.error().text, "driver") || has(gpu.error().text, "GPU")));
  BOOST_TEST(has(gpu.error().text, "--device cpu"));
#else
  if (plugin.ok()) return;  // one of another build, where the system looks
  BOOST_TEST(has(plugin.error().text, "nvcc"));
  BOOST_TEST(has(plugin.error().text, "--device cpu"));
#endif
}

BOOST_AUTO_TEST_CASE(a_gpu_that_is_not_there) {
  const Result<std::unique_ptr<Gpu>> gpu = Gpu::open(target_table(), 99);
  BOOST_TEST_REQUIRE(!gpu.ok());
  BOOST_TEST(has(gpu.error().text, "there is no GPU 99"));
}

BOOST_AUTO_TEST_CASE(too_little_memory_says_for_what_and_what_helps) {
  if (on_device()) return;
  const ParamLayout layout = compress::layout_of({1'000'000});
  set_emulated_memory(3 << 20);
  const Target target;
  const Result<DeviceCompressor> made = DeviceCompressor::create(*target.gpu, layout, {});
  set_emulated_memory(0);
  BOOST_TEST_REQUIRE(!made.ok());
  BOOST_TEST((made.error().code == Errc::limit));
  BOOST_TEST(has(made.error().text, "4 MiB of the residual"));
  BOOST_TEST(has(made.error().text, "smaller model"));
}

BOOST_AUTO_TEST_SUITE_END()
