// A compressor on each side for tests that want the same of both: the same entries, step, payload and residual, bit for
// bit.
#pragma once

#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <vector>

#include "compress/select/compressor.h"
#include "gpu/compress/codec.h"
#include "gpu/compress/compressor.h"
#include "runtime/base/prng.h"
#include "tests/gpu/target.h"

namespace rumor::gpu {

struct CompressorPair {
  CompressorPair(std::uint64_t order, const ParamLayout& the_layout, const compress::CompressorOptions& options)
      : target(order),
        layout(the_layout),
        cpu(layout, options),
        gpu(DeviceCompressor::create(*target.gpu, layout, options).value()),
        codec(*target.gpu, layout),
        delta(DeviceArray<float>::create(*target.gpu, layout.params(), "a test").value()),
        bf16(DeviceArray<std::uint16_t>::create(*target.gpu, layout.params(), "a test").value()) {}

  void check_residual() {
    const std::vector<float> got = gpu.residual().value();
    const std::span<const float> expected = cpu.residual();
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (std::isnan(got[i]) && std::isnan(expected[i])) continue;
      BOOST_TEST_REQUIRE(std::bit_cast<std::uint32_t>(got[i]) == std::bit_cast<std::uint32_t>(expected[i]));
    }
  }

  // Both absorb; the same must come of it. False: both refused.
  bool absorb(const std::vector<float>& change, bool as_bf16 = false) {
    Result<void> expected, got;
    if (as_bf16) {
      std::vector<std::uint16_t> halves;
      for (const float value : change)
        halves.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16));
      bf16.write(halves.data(), halves.size());
      expected = cpu.absorb_bf16(halves, cpu_update);
      got = gpu.absorb_bf16(bf16, gpu_update);
    } else {
      delta.write(change.data(), change.size());
      expected = cpu.absorb(change, cpu_update);
      got = gpu.absorb(delta, gpu_update);
    }
    BOOST_TEST_REQUIRE(got.ok() == expected.ok());
    if (!got) BOOST_TEST(got.error().text == expected.error().text);
    check_payload();
    return got.ok();
  }

  void check_payload() {
    BOOST_TEST_REQUIRE(gpu_update.count == cpu_update.index.size());
    const Result<Bytes> payload = codec.encode(gpu_update);
    BOOST_TEST_REQUIRE(payload.ok());
    BOOST_TEST_REQUIRE((*payload == compress::encode(layout, cpu_update)));
  }

  Target target;
  ParamLayout layout;
  compress::Compressor cpu;
  DeviceCompressor gpu;
  DeviceCodec codec;
  DeviceArray<float> delta;
  DeviceArray<std::uint16_t> bf16;
  compress::SparseUpdate cpu_update;
  DeviceUpdate gpu_update;
};

// A vector like those of training: roughly normal noise, larger in some stretches than in others.
inline std::vector<float> noise(Prng& prng, std::size_t size, float scale) {
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    float sum = -6;
    for (int part = 0; part < 12; ++part) sum += static_cast<float>(prng.below(1 << 16)) / (1 << 16);
    values[i] = sum * scale * (i / 512 % 3 == 0 ? 4.0f : 1.0f);
  }
  return values;
}

}  // namespace rumor::gpu
