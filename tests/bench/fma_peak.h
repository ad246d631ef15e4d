// How many operations a second fused multiply-adds alone reach on this core: what a matrix product is
// measured by.
#pragma once

namespace rumor::bench {

// Independent multiply-adds in registers, for a fifth of a millisecond: twice their number a second, with the
// widest vectors that this processor has among AVX-512, AVX2 and none.
double fma_rate();

}  // namespace rumor::bench
