// Checks that nvcc, its host compiler and the requested architectures work together; compiled during configuration.
#include <cstdint>

__global__ void probe(std::uint32_t* number) { atomicAdd(number, 1u); }
