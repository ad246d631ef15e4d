// CRC32C (Castagnoli polynomial, as in iSCSI and ext4): finds damaged segments before they are decoded.
//
// Two ways to the same number: the instruction of SSE 4.2 where the processor has it, and tables of eight
// bytes at a time. Source: RFC 3720, appendix B.4 (polynomial, order of bits, test values).
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
