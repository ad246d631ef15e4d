// The end of a process that gets no more memory: one line on stderr with the cause and the fix, and exit status 1.
// Nothing can be saved then, and nothing is damaged: a state directory is whole at any instruction (ARCHITECTURE.md).
//
// Thread: call once, before others start. It holds for operator new in all threads, and for threads that cannot be
// started. A container or machine that runs out of memory kills a process without asking it, and so without this line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rumor::tools {

void explain_lack_of_memory();

// Bytes that /proc/self/status, whose text is given, says under `name`, such as "VmData". 0: it does not say.
std::uint64_t bytes_in_status(std::string_view status, std::string_view name);

}  // namespace rumor::tools
