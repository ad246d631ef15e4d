// CRC32C (Castagnoli polynomial, as in iSCSI and ext4): finds damaged segments before they are decoded.
//
// Two implementations give the same number: the SSE 4.2 instruction if the processor has it, and tables for eight bytes
// at a time. Source: RFC 3720, appendix B.4 (polynomial, order of bits, test values).
//
// Thread: plain functions.
#pragma once

#include <cstdint>

#include "runtime/base/types.h"

namespace rumor::compress {

std::uint32_t crc32c(BytesView bytes);

// The tables, for every processor; for tests.
std::uint32_t crc32c_portable(BytesView bytes);

}  // namespace rumor::compress
