// Whether this build has a sanitizer: RUMOR_SANITIZED, and RUMOR_SANITIZED_ADDRESS where it is that of addresses.
// Macros and nothing else, so that sources of kernels may include it.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define RUMOR_SANITIZED_ADDRESS
#elif defined(__SANITIZE_THREAD__)
#define RUMOR_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RUMOR_SANITIZED_ADDRESS
#elif __has_feature(thread_sanitizer)
#define RUMOR_SANITIZED
#endif
#endif
#if defined(RUMOR_SANITIZED_ADDRESS)
#define RUMOR_SANITIZED
#endif
