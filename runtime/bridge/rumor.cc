// The C ABI: checks arguments, keeps exceptions in, and hands on to runtime/bridge/swarm.h.
#include "runtime/bridge/rumor.h"

#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "runtime/base/text.h"
#include "runtime/bridge/swarm.h"
#include "runtime/daemon/status/version.h"

struct rumor_swarm {
  std::unique_ptr<rumor::bridge::Swarm> swarm;
  std::string warning = {};  // the last that rumor_warning() returned
};

namespace {

using rumor::Errc;
using rumor::Error;
using rumor::Result;
using rumor::str;
using rumor::bridge::Swarm;

thread_local std::string last_error;

int fail(int code, std::string text) noexcept {
  last_error.swap(text);
  return code;
}

int fail(const Error& error) { return fail(static_cast<int>(error.code), error.text); }

int done(const Result<void>& result) { return result ? RUMOR_OK : fail(result.error()); }

// call() without exceptions.
template <class Call>
int guarded(Call&& call) noexcept {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return fail(RUMOR_INTERNAL, {});
  } catch (const std::exception& error) {
    try {
      return fail(RUMOR_INTERNAL, str("unexpected: ", error.what()));
    } catch (...) {
      return fail(RUMOR_INTERNAL, {});
    }
  } catch (...) {
    return fail(RUMOR_INTERNAL, {});
  }
}

enum class When { before_start, running, any };

// call(swarm), where it may be called now.
template <class Call>
int with(rumor_swarm* handle, When when, Call&& call) noexcept {
  return guarded([&] {
    if (handle == nullptr) return fail(RUMOR_USAGE, "swarm is null");
    Swarm& swarm = *handle->swarm;
    if (!swarm.is_at_home())
      return fail(RUMOR_FORKED, "this swarm belongs to the process that started it; use it there");
    if (when == When::before_start && swarm.began())
      return fail(RUMOR_USAGE, "options and parameters are told before rumor_start()");
    if (when == When::running && !swarm.began()) return fail(RUMOR_USAGE, "call rumor_start() first");
    if (when == When::running && !swarm.running()) return fail(RUMOR_ENDED, "this peer has left its run");
    return call(swarm);
  });
}

rumor::Duration patience(double seconds) {
  return rumor::from_seconds(seconds > 0 ? std::min(seconds, 1e9) : 0);
}

int parameter(rumor_swarm* swarm, const char* name, int type, size_t rank, const uint32_t* shape, void* data,
              std::optional<int> device) {
  return with(swarm, When::before_start, [&](Swarm& s) {
    if (name == nullptr || data == nullptr || (shape == nullptr && rank > 0))
      return fail(RUMOR_USAGE, "name, shape or data is null");
    if (type != RUMOR_F32 && type != RUMOR_BF16)
      return fail(RUMOR_USAGE, str("tensor ", name, ": type ", type, " is neither RUMOR_F32 nor RUMOR_BF16"));
    if (rank > 64) return fail(RUMOR_LIMIT, str("tensor ", name, ": ", rank, " dimensions"));
    using Type = rumor::OutsideTensor::Type;
    return done(s.parameter({.name = name, .shape = {shape, shape + rank}},
                            {type == RUMOR_BF16 ? Type::bf16 : Type::f32, data}, device));
  });
}

int local(rumor_swarm* swarm, const char* name, size_t bytes, void* data, std::optional<int> device) {
  return with(swarm, When::before_start, [&](Swarm& s) {
    if (name == nullptr || data == nullptr) return fail(RUMOR_USAGE, "name or data is null");
    return done(s.local({static_cast<std::uint8_t*>(data), bytes}, device));
  });
}

}  // namespace

int rumor_abi(void) { return RUMOR_ABI; }

const char* rumor_version(void) { return rumor::daemon::version(); }

const char* rumor_error(void) {
  return last_error.empty() ? "out of memory, or nothing has failed" : last_error.c_str();
}

int rumor_create(const char* run, rumor_swarm** swarm) {
  return guarded([&] {
    if (run == nullptr || swarm == nullptr) return fail(RUMOR_USAGE, "run or swarm is null");
    auto made = Swarm::create(run);
    if (!made) return fail(made.error());
    *swarm = new rumor_swarm{std::move(made).value()};
    return RUMOR_OK;
  });
}

int rumor_option(rumor_swarm* swarm, const char* name, const char* value) {
  return with(swarm, When::before_start, [&](Swarm& s) {
    if (name == nullptr || value == nullptr) return fail(RUMOR_USAGE, "name or value is null");
    return done(s.option(name, value));
  });
}

int rumor_parameter(rumor_swarm* swarm, const char* name, int type, size_t rank, const uint32_t* shape, void* data) {
  return parameter(swarm, name, type, rank, shape, data, std::nullopt);
}

int rumor_local(rumor_swarm* swarm, const char* name, size_t bytes, void* data) {
  return local(swarm, name, bytes, data, std::nullopt);
}

int rumor_cuda_parameter(rumor_swarm* swarm, const char* name, int type, size_t rank, const uint32_t* shape, void* data,
                         int device) {
  return parameter(swarm, name, type, rank, shape, data, device);
}

int rumor_cuda_local(rumor_swarm* swarm, const char* name, size_t bytes, void* data, int device) {
  return local(swarm, name, bytes, data, device);
}

int rumor_start(rumor_swarm* swarm, double wait_seconds) {
  return with(swarm, When::before_start, [&](Swarm& s) {
    const auto joined = s.start(patience(wait_seconds));
    if (!joined) return fail(joined.error());
    return *joined ? RUMOR_OK : fail(RUMOR_ALONE, "nobody has answered yet; are the seeds right, and running?");
  });
}

int rumor_step(rumor_swarm* swarm, uint32_t samples, double loss) {
  return with(swarm, When::running, [&](Swarm& s) {
    const auto goes_on = s.step(samples, loss);
    if (!goes_on) return fail(goes_on.error());
    return *goes_on ? RUMOR_OK : fail(RUMOR_ENDED, "the run has seen all of its samples");
  });
}

const char* rumor_warning(rumor_swarm* swarm) {
  bool found = false;
  with(swarm, When::running, [&](Swarm& s) {
    auto text = s.warning();
    found = text.has_value();
    if (found) swarm->warning = std::move(*text);
    return RUMOR_OK;
  });
  return found ? swarm->warning.c_str() : nullptr;
}

int rumor_status(rumor_swarm* swarm, char* buffer, size_t size, size_t* needed) {
  return with(swarm, When::any, [&](Swarm& s) {
    const std::string text = s.status();
    if (needed != nullptr) *needed = text.size() + 1;
    if (buffer == nullptr && size == 0 && needed != nullptr) return RUMOR_OK;
    if (buffer == nullptr || size <= text.size())
      return fail(RUMOR_LIMIT, str("the status takes ", text.size() + 1, " bytes"));
    std::memcpy(buffer, text.c_str(), text.size() + 1);
    return RUMOR_OK;
  });
}

const char* rumor_event(rumor_swarm* swarm) {
  thread_local std::string line;
  bool found = false;
  with(swarm, When::any, [&](Swarm& s) {
    auto next = s.event();
    found = next.has_value();
    if (found) line = std::move(*next);
    return RUMOR_OK;
  });
  return found ? line.c_str() : nullptr;
}

int rumor_checkpoint(rumor_swarm* swarm) {
  return with(swarm, When::running, [](Swarm& s) { return done(s.checkpoint()); });
}

int rumor_show_shared(rumor_swarm* swarm, int shared) {
  return with(swarm, When::running, [&](Swarm& s) { return done(s.show_shared(shared != 0)); });
}

int rumor_take_back(rumor_swarm* swarm) {
  return with(swarm, When::running, [](Swarm& s) {
    s.take_back();
    return RUMOR_OK;
  });
}

int rumor_leave(rumor_swarm* swarm, double wait_seconds) {
  return with(swarm, When::running, [&](Swarm& s) { return done(s.leave(patience(wait_seconds))); });
}

int rumor_interrupt(rumor_swarm* swarm) {
  return with(swarm, When::any, [](Swarm& s) {
    s.interrupt();
    return RUMOR_OK;
  });
}

void rumor_free(rumor_swarm* swarm) {
  guarded([&] {
    // In a child of fork() the threads are not there to be ended.
    if (swarm == nullptr || !swarm->swarm->is_at_home()) return RUMOR_OK;
    delete swarm;
    return RUMOR_OK;
  });
}
