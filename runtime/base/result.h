// Result<T>: a value, or the reason why there is none. For everything that others give us: network bytes,
// files, configuration, command lines. The text is one line, names the cause and, where there is one, the
// fix.
//
// Thread: plain values.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "runtime/base/check.h"

namespace rumor {

// Stable numbers: they reach logs and exit codes. Never renumber.
enum class Errc : int {
  usage = 1,       // wrong command line or run file                    -> exit 2
  not_found = 2,   // a file or name that does not exist
  io = 3,          // the system refused
  corrupt = 4,     // damaged or malformed bytes
  mismatch = 5,    // well-formed, but of another run, model or version -> exit 3
  limit = 6,       // beyond a bound of limits.h
  diverged = 7,    // replicas with equal have-sets and different bits  -> exit 4
  not_finite = 8,  // a loss or a weight is no number: training has diverged
};

struct Error {
  Errc code = Errc::io;
  std::string text;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // Requires: ok().
  T& value() & {
    RUMOR_CHECK(ok());
    return std::get<0>(state_);
  }
  const T& value() const& {
    RUMOR_CHECK(ok());
    return std::get<0>(state_);
  }
  T&& value() && {
    RUMOR_CHECK(ok());
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // Requires: !ok().
  const Error& error() const {
    RUMOR_CHECK(!ok());
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

// Result<void>: success, or the reason.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}
  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    RUMOR_CHECK(!ok());
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace rumor
