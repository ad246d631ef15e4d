// StepRule: the change of one parameter in one step of an optimizer, as numbers and a formula.
//
// models/optimizers/optimizer.cc applies the formulas to all parameters. compress/ evaluates the same formulas inside
// its pass over the residual, so that the change need not go through memory. Both use this text, so the bits are
// equal: every operation is a single IEEE 754 operation (+ - * / and square root) in the order written here.
//
// The formulas take any type with + - * / and overloads of square_root and larger, built from a float: a float or a
// vector register; nvcc compiles them for a GPU (gpu/cuda/scan.cuh). They are static and always inlined, so that a file
// compiled for wider instructions has its own copy.
//
// Thread: plain values. The moments belong to the optimizer, and during a step to the code that runs the step.
#pragma once

#include <cstdint>

namespace rumor {

struct StepRule {
  enum class Kind : std::uint8_t { sgd, momentum, rmsprop, adam, adamw, nadamw, adaptive_revision };
  Kind kind = Kind::sgd;
  // -rate; adam, adamw: over the first moment's bias correction, 1 - keep1^t; nadamw: times keep1 over that of the next
  // step
  float factor = 0;
  float ahead = 0;             // nadamw: -rate * take1 / (1 - keep1^t)
  float keep1 = 0, take1 = 0;  // momentum, adam: first moment; momentum takes the gradient whole
  float keep2 = 0, take2 = 0;  // rmsprop, adam: second moment
  float bias_correction = 1;   // adam, adamw, nadamw: 1 / (1 - keep2^t)
  float epsilon = 0;
  float decay = 0;  // adamw, nadamw, sgdw: -rate * weight decay
  // One float a parameter each; null where the kind has none.
  float* first = nullptr;          // first moment (momentum, adam, adamw, nadamw); adaptive_revision: z
  float* second = nullptr;         // second moment (rmsprop, all Adams); adaptive_revision: the largest z so far
  float* last = nullptr;           // adaptive_revision: the gradient of the last step, 0 once it is in z
  const float* weights = nullptr;  // adamw, nadamw, sgdw: the weights at which the gradient was computed
};

namespace step_rule {

#if defined(__CUDACC__)
#define RUMOR_STEP_INLINE static __host__ __device__ __forceinline__
#else
#define RUMOR_STEP_INLINE static inline __attribute__((always_inline))
#endif

RUMOR_STEP_INLINE float square_root(float value) {
#if defined(__CUDA_ARCH__)
  return sqrtf(value);
#else
  return __builtin_sqrtf(value);
#endif
}
// The second where either is not a number, as vector instructions have it.
RUMOR_STEP_INLINE float larger(float a, float b) {
  return a > b ? a : b;
}

// factor g
template <class Number>
RUMOR_STEP_INLINE Number sgd(const StepRule& rule, Number gradient) {
  return Number(rule.factor) * gradient;
}

// factor g + decay w: of Muon alone, whose g is the direction of a hidden matrix (models/optimizers/matrix_step.h)
template <class Number>
RUMOR_STEP_INLINE Number sgdw(const StepRule& rule, Number gradient, Number weight) {
  return Number(rule.factor) * gradient + Number(rule.decay) * weight;
}

// v = keep1 v + g;  factor v
template <class Number>
RUMOR_STEP_INLINE Number momentum(const StepRule& rule, Number gradient, Number& first) {
  first = Number(rule.keep1) * first + gradient;
  return Number(rule.factor) * first;
}

// s = keep2 s + take2 g g;  factor g / (sqrt s + epsilon)
template <class Number>
RUMOR_STEP_INLINE Number rmsprop(const StepRule& rule, Number gradient, Number& second) {
  second = Number(rule.keep2) * second + Number(rule.take2) * (gradient * gradient);
  return Number(rule.factor) * gradient / (square_root(second) + Number(rule.epsilon));
}

// m = keep1 m + take1 g;  s as above;  factor m / (sqrt(s bias_correction) + epsilon)
template <class Number>
RUMOR_STEP_INLINE Number adam(const StepRule& rule, Number gradient, Number& first, Number& second) {
  first = Number(rule.keep1) * first + Number(rule.take1) * gradient;
  second = Number(rule.keep2) * second + Number(rule.take2) * (gradient * gradient);
  return Number(rule.factor) * first / (square_root(second * Number(rule.bias_correction)) + Number(rule.epsilon));
}

// adam, and decay w  (Loshchilov, Hutter 2019)
template <class Number>
RUMOR_STEP_INLINE Number adamw(const StepRule& rule, Number gradient, Number& first, Number& second, Number weight) {
  return Number(rule.decay) * weight + adam(rule, gradient, first, second);
}

// m and s as adam's;  decay w + (factor m + ahead g) / (sqrt(s bias_correction) + epsilon)  (Dozat 2016)
template <class Number>
RUMOR_STEP_INLINE Number nadamw(const StepRule& rule, Number gradient, Number& first, Number& second, Number weight) {
  first = Number(rule.keep1) * first + Number(rule.take1) * gradient;
  second = Number(rule.keep2) * second + Number(rule.take2) * (gradient * gradient);
  const Number direction = Number(rule.factor) * first + Number(rule.ahead) * gradient;
  return Number(rule.decay) * weight +
         direction / (square_root(second * Number(rule.bias_correction)) + Number(rule.epsilon));
}

// z += last last;  top = larger(top, z);  last = g;  factor g / sqrt(larger(top, z + g g))
// (McMahan, Streeter 2014; models/optimizers/adaptive_revision.h has the correction between two steps)
template <class Number>
RUMOR_STEP_INLINE Number adaptive_revision(const StepRule& rule, Number gradient, Number& z, Number& top,
                                           Number& last) {
  z = z + last * last;
  top = larger(top, z);
  last = gradient;
  return Number(rule.factor) * gradient / square_root(larger(top, z + gradient * gradient));
}

#undef RUMOR_STEP_INLINE

}  // namespace step_rule
}  // namespace rumor
