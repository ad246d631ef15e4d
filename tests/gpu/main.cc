// The main() of test_gpu: says what the tests run on, a GPU or the emulation.
#define BOOST_TEST_NO_MAIN
#define BOOST_TEST_ALTERNATIVE_INIT_API
#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "gpu/device/plugin.h"
#include "tests/gpu/target.h"

namespace rumor::gpu {
namespace {

const GpuTable* table = nullptr;

// False: there is no GPU.
bool choose_target() {
  const char* wanted = std::getenv("RUMOR_GPU_TEST");
  if (wanted == nullptr || std::strcmp(wanted, "device") != 0) {
    table = &emulated_table();
    std::puts("test_gpu: kernels EMULATED on this processor; no GPU is used");
    return true;
  }
  const Result<const GpuTable*> plugin = open_plugin();
  if (!plugin) {
    std::printf("test_gpu: SKIPPED, %s\n", plugin.error().text.c_str());
    return false;
  }
  table = *plugin;
  const Result<std::unique_ptr<Gpu>> gpu = Gpu::open(*table, 0);
  if (!gpu) {
    std::printf("test_gpu: SKIPPED, %s\n", gpu.error().text.c_str());
    return false;
  }
  const Result<DeviceInfo> info = (*gpu)->describe();
  std::printf("test_gpu: ON THE GPU %s, compute capability %d.%d\n", info ? info->name : "?", info ? info->major : 0,
              info ? info->minor : 0);
  return true;
}

}  // namespace

const GpuTable& target_table() {
  return *table;
}
bool on_device() {
  return table != &emulated_table();
}

bool has_products(const Target& target) {
  MatmulArgs one{};
  const Guarded<float> number(target, 1), product(target, 1);
  one.rows = one.columns = one.depth = 1;
  one.a = one.b = number.data();
  one.y = product.data();
  ErrorText error{};
  if (target.table().model.matmul(target.device(), &one, &error) == Status::ok) return true;
  const bool absent = on_device() && std::strstr(error.text, "needs libcublasLt") != nullptr;
  if (absent) BOOST_TEST_MESSAGE(error.text);
  return !absent;
}

Target::Target(std::uint64_t order) {
  set_emulated_order(order);
  gpu = std::move(Gpu::open(target_table(), 0).value());
}

std::unique_ptr<GpuGroup> target_group(std::size_t size, std::uint64_t order) {
  set_emulated_order(order);
  std::vector<int> ordinals(size);
  std::iota(ordinals.begin(), ordinals.end(), 0);
  auto group = GpuGroup::open(target_table(), ordinals);
  if (group) return std::move(group).value();
  BOOST_TEST_REQUIRE((size > 1 && on_device()));
  BOOST_TEST_MESSAGE(group.error().text);
  return nullptr;
}

}  // namespace rumor::gpu

int main(int argc, char** argv) {
  constexpr int skipped = 77;
  const bool there = rumor::gpu::choose_target();
  std::fflush(stdout);
  if (!there) return skipped;
  return boost::unit_test::unit_test_main([] { return true; }, argc, argv);
}
