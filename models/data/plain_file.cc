#include "models/data/plain_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/text.h"

namespace rumor::models {

Result<std::shared_ptr<const PlainFile>> PlainFile::open(const std::string& path) {
  const auto refused = [&path](int reason) {
    return Error{reason == ENOENT ? Errc::not_found : Errc::io,
                 str("cannot open ", path, ": ", std::strerror(reason))};
  };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return refused(errno);
  struct stat status {};
  if (::fstat(file, &status) != 0) {
    const int reason = errno;
    ::close(file);
    return refused(reason);
  }
  std::shared_ptr<const PlainFile> opened(new PlainFile(file, static_cast<std::uint64_t>(status.st_size)));
  if (!S_ISREG(status.st_mode)) return Error{Errc::io, str(path, " is not a plain file")};
  return opened;
}

PlainFile::~PlainFile() { ::close(file_); }

Result<void> PlainFile::read(std::uint64_t at, std::span<std::uint8_t> out) const {
  while (!out.empty()) {
    const ssize_t got = ::pread(file_, out.data(), out.size(), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error{Errc::io, str("cannot be read at byte ", at, ": ", std::strerror(errno))};
    if (got == 0)
      return Error{Errc::corrupt, str("the file has become shorter while it was read, and ends before byte ",
                                      at + out.size(), "; replace a file that is in use by renaming another one")};
    at += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

}  // namespace rumor::models
