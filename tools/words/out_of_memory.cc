#include "tools/words/out_of_memory.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <system_error>

namespace rumor::tools {

namespace {

constexpr std::size_t text_bytes_max = 512;

// A limit of this process as people read it, such as " (its limit is 600 MB: ulimit -v)".
void describe_limit(char (&text)[text_bytes_max]) {
  constexpr struct {
    decltype(RLIMIT_AS) kind;
    const char* option;
  } limits[] = {{RLIMIT_AS, "-v"}, {RLIMIT_DATA, "-d"}};
  std::size_t used = 0;
  for (const auto& [kind, option] : limits) {
    rlimit found{};
    if (getrlimit(kind, &found) != 0 || found.rlim_cur == RLIM_INFINITY) continue;
    const int more = std::snprintf(text + used, sizeof text - used, "; its limit is %llu MB (ulimit %s)",
                                   static_cast<unsigned long long>(found.rlim_cur / 1'000'000), option);
    used = std::min(sizeof text - 1, used + static_cast<std::size_t>(std::max(more, 0)));
  }
}

std::uint64_t megabytes_in_use() {
  char status[4096];
  const int file = ::open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  const ssize_t bytes = file < 0 ? 0 : ::read(file, status, sizeof status);
  if (file >= 0) ::close(file);
  return bytes_in_status({status, static_cast<std::size_t>(std::max<ssize_t>(bytes, 0))}, "VmData") / 1'000'000;
}

// Allocates nothing. Several threads may lack memory at the same time, and one speaks.
[[noreturn]] void end_for_lack_of(const char* what) {
  static std::atomic<bool> speaks{false};
  if (speaks.exchange(true))
    for (;;) ::pause();
  char limit[text_bytes_max] = "";
  describe_limit(limit);
  std::fprintf(stderr,
               "rumor: out of memory: no room for %s, with %llu MB in use%s. Raise the limit, take a machine with more "
               "memory, or cut the model into more stages (pipeline.stages, rumor peer --stage)\n",
               what, static_cast<unsigned long long>(megabytes_in_use()), limit);
  std::_Exit(1);
}

[[noreturn]] void end_by_exception() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    end_for_lack_of("more data");
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) end_for_lack_of("another thread");
    std::fprintf(stderr, "rumor: %s\n", error.what());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rumor: %s\n", error.what());
  } catch (...) {
  }
  std::abort();
}

}  // namespace

void explain_lack_of_memory() {
  std::set_new_handler([] { end_for_lack_of("more data"); });
  std::set_terminate(end_by_exception);
}

std::uint64_t bytes_in_status(std::string_view status, std::string_view name) {
  for (std::size_t begin = 0; begin < status.size();) {
    const std::size_t end = std::min(status.find('\n', begin), status.size());
    std::string_view line = status.substr(begin, end - begin);
    begin = end + 1;
    if (!line.starts_with(name) || line.substr(name.size(), 1) != ":") continue;
    line.remove_prefix(std::min(line.find_first_of("0123456789"), line.size()));
    std::uint64_t kibibytes = 0;
    std::from_chars(line.data(), line.data() + line.size(), kibibytes);
    return kibibytes * 1024;
  }
  return 0;
}

}  // namespace rumor::tools
