// RUMOR_CHECK: our own invariants, on in every build. Never reached by bytes from a peer, a file or a user;
// those are reported through Result (result.h).
#pragma once

namespace rumor {

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace rumor

#define RUMOR_CHECK(condition) \
  (static_cast<bool>(condition) ? void(0) : ::rumor::check_failed(#condition, __FILE__, __LINE__))
