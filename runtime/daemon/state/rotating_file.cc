#include "runtime/daemon/state/rotating_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/base/text.h"

namespace rumor::daemon {

Result<RotatingFile> RotatingFile::open(const std::string& path, std::size_t bytes_max) {
  RotatingFile file(path, bytes_max);
  if (auto opened = file.reopen(); !opened) return opened.error();
  return file;
}

Result<void> RotatingFile::reopen() {
  file_.reset(std::fopen(path_.c_str(), "abe"));
  if (!file_ || std::fseek(file_.get(), 0, SEEK_END) != 0)
    return Error{Errc::io, str("cannot write ", path_, ": ", std::strerror(errno))};
  bytes_ = static_cast<std::size_t>(std::max(std::ftell(file_.get()), 0L));
  return {};
}

void RotatingFile::rotate() {
  file_.reset();
  for (int n = old_files; n > 1; --n) std::rename(str(path_, ".", n - 1).c_str(), str(path_, ".", n).c_str());
  std::rename(path_.c_str(), str(path_, ".1").c_str());
}

Result<void> RotatingFile::append(std::string_view text) {
  if (bytes_ > 0 && bytes_ + text.size() > bytes_max_) rotate();
  if (!file_)
    if (auto opened = reopen(); !opened) return opened;
  const bool whole = std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size();
  if (!whole || std::fflush(file_.get()) != 0) {
    const int cause = errno;
    file_.reset();  // begun anew with the next line
    return Error{Errc::io, str("cannot write ", path_, ": ", std::strerror(cause))};
  }
  bytes_ += text.size();
  return {};
}

}  // namespace rumor::daemon
