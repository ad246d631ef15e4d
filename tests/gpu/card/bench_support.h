// Shared by the benchmarks of this folder: times, and device memory filled with data.
//
// Thread: plain functions.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "gpu/device/device.h"
#include "runtime/base/prng.h"

namespace rumor::gpu {

template <class T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "bench_gpu: %s\n", result.error().text.c_str());
  std::exit(1);
}
inline void must(const Result<void>& result) {
  if (result) return;
  std::fprintf(stderr, "bench_gpu: %s\n", result.error().text.c_str());
  std::exit(1);
}

// Matrix products are cuBLASLt's, which need not be there.
inline bool is_no_cublas(const Error& error) {
  return error.text.find("needs libcublasLt") != std::string::npos;
}

// A member of a JSON object.
inline std::string number(const char* name, double value) {
  char text[96];
  std::snprintf(text, sizeof text, "\"%s\": %.6g", name, value);
  return text;
}

// Seconds of one call of work(), the shortest average of some rounds; emulated: it is called once.
template <class Work>
double seconds_of(const Gpu& gpu, bool emulated, int calls, const Work& work) {
  using Clock = std::chrono::steady_clock;
  double best = 1e30;
  if (emulated)
    calls = 1;
  else
    work();  // the first call of a kernel loads it
  for (int round = 0; round < (emulated ? 1 : 5); ++round) {
    must(gpu.wait());
    const auto begin = Clock::now();
    for (int call = 0; call < calls; ++call) work();
    must(gpu.wait());
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count() / calls);
  }
  return best;
}

// Noise of about `scale`, the same block again and again.
inline DeviceArray<float> noise(const Gpu& gpu, std::size_t size, float scale) {
  DeviceArray<float> made = must(DeviceArray<float>::create(gpu, size, "noise"));
  std::vector<float> block(std::min<std::size_t>(size, 1 << 22));
  Prng prng(1);
  for (float& value : block) {
    const std::uint64_t bits = prng.next();
    float sum = -4;
    for (int part = 0; part < 8; ++part) sum += static_cast<float>(bits >> (8 * part) & 255) / 255;
    value = sum * scale;
  }
  made.write(block.data(), block.size());
  for (std::size_t at = block.size(); at < size; at += block.size())
    gpu.table().copy_within(gpu.device(), made.data() + at, made.data(),
                            std::min(block.size(), size - at) * sizeof(float));
  must(gpu.wait());
  return made;
}

}  // namespace rumor::gpu
