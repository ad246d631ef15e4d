// mutant(n): deliberate bugs, for proving that the simulator's checkers can fail (tests/mutants).
//
// The sources that use it are compiled a second time with -DRUMOR_MUTANTS, into a library that only the mutant tests
// link. There the bug with the chosen number is active. In the product mutant() is constantly false and leaves no
// instruction.
//
// Thread: the number is set once, before anything runs.
#pragma once

namespace rumor {

#ifdef RUMOR_MUTANTS
extern int mutant_number;  // 0: none
inline bool mutant(int number) {
  return mutant_number == number;
}
#else
constexpr bool mutant(int) {
  return false;
}
#endif

}  // namespace rumor
