#include "models/data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/text.h"

namespace rumor::models {

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  const auto refused = [&path](int reason) {
    return Error{reason == ENOENT ? Errc::not_found : Errc::io,
                 str("cannot open ", path, ": ", std::strerror(reason))};
  };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return refused(errno);
  struct stat status {};
  const bool known = ::fstat(file, &status) == 0;
  const int reason = errno;
  const bool plain = known && S_ISREG(status.st_mode);
  const auto size = plain ? static_cast<std::size_t>(status.st_size) : 0;
  void* data = size > 0 ? ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0) : nullptr;
  const int map_reason = errno;
  ::close(file);
  if (!known) return refused(reason);
  if (!plain) return Error{Errc::io, str(path, " is not a plain file")};
  if (data == MAP_FAILED) return refused(map_reason);
  return std::shared_ptr<const MappedFile>(new MappedFile(static_cast<const std::uint8_t*>(data), size));
}

MappedFile::~MappedFile() {
  if (size_ > 0) ::munmap(const_cast<std::uint8_t*>(data_), size_);
}

}  // namespace rumor::models
