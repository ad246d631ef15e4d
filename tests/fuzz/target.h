// FUZZ_TARGET(name) { ... }: tries a decoder with `data` (`size` bytes). The function returns 0, and aborts when
// something is wrong.
//
// All are in the one program that replays corpora (replay.cc), under their names. With -Dfuzzing=true each is in a
// program of its own as well, compiled with RUMOR_FUZZING, where libFuzzer finds it as LLVMFuzzerTestOneInput.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#ifdef RUMOR_FUZZING
#define FUZZ_TARGET(name) \
  extern "C" int LLVMFuzzerTestOneInput([[maybe_unused]] const std::uint8_t* data, [[maybe_unused]] std::size_t size)
#else
#define FUZZ_TARGET(name)                                                                                  \
  static int fuzz_##name(const std::uint8_t* data, std::size_t size);                                      \
  static const bool fuzz_##name##_listed = rumor::test::fuzz_targets().emplace(#name, fuzz_##name).second; \
  static int fuzz_##name(const std::uint8_t* data, std::size_t size)

namespace rumor::test {

using FuzzTarget = int (*)(const std::uint8_t* data, std::size_t size);

// Filled before main().
inline std::map<std::string, FuzzTarget>& fuzz_targets() {
  static std::map<std::string, FuzzTarget> all;
  return all;
}

}  // namespace rumor::test
#endif
