// Whether nvcc, its host compiler and the architectures asked for go together: compiled when the build is configured.
#include <cstdint>

__global__ void probe(std::uint32_t* number) { atomicAdd(number, 1u); }
