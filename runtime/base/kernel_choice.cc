#include "runtime/base/kernel_choice.h"

#include <array>
#include <atomic>
#include <string>

#include "runtime/base/text.h"

namespace rumor {

namespace {

constexpr std::array<const char*, 3> level_names{"portable", "avx2", "avx512"};
constexpr int not_chosen = -1;

std::atomic<int> chosen_level{not_chosen};

}  // namespace

KernelLevel best_kernel_level() {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return KernelLevel::portable;
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                    __builtin_cpu_supports("bmi2");
  return wide ? KernelLevel::avx512 : KernelLevel::avx2;
#else
  return KernelLevel::portable;
#endif
}

KernelLevel kernel_level() {
  const int level = chosen_level.load(std::memory_order_acquire);
  return level == not_chosen ? best_kernel_level() : static_cast<KernelLevel>(level);
}

Result<void> choose_kernels(std::string_view name) {
  if (name.empty()) {
    chosen_level.store(not_chosen, std::memory_order_release);
    return {};
  }
  std::string known;
  for (int level = 0; level <= static_cast<int>(best_kernel_level()); ++level) {
    if (name == level_names[static_cast<std::size_t>(level)]) {
      chosen_level.store(level, std::memory_order_release);
      return {};
    }
    known += str(known.empty() ? "" : ", ", level_names[static_cast<std::size_t>(level)]);
  }
  return Error{Errc::usage, str("no kernels '", name, "' for this processor; it has: ", known)};
}

}  // namespace rumor
