// shared_buffers(): which of a program's buffers all peers share, from the option `buffers` (rumor.h).
//
// Thread: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/training/outside/buffer_means.h"

namespace rumor::bridge {

// `description`: a JSON list, an object for each of `local` in turn. Returns those with "shared": true. Errors:
// Errc::usage when it does not describe this memory, or a type cannot be shared.
Result<std::vector<SharedBuffer>> shared_buffers(const std::string& description,
                                                 std::span<const std::span<std::uint8_t>> local);

}  // namespace rumor::bridge
