#include "runtime/daemon/state/file_disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "runtime/base/text.h"
#include "runtime/daemon/state/storage.h"

namespace rumor::daemon {

namespace {

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : number_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }

 private:
  int number_;
};

Error failed(const char* what, const std::string& path, int number) {
  return {number == ENOENT ? Errc::not_found : Errc::io,
          str("cannot ", what, " ", path, ": ", std::strerror(number))};
}

}  // namespace

Result<FileDisk> FileDisk::open(const std::string& directory) {
  if (auto made = make_directory(directory); !made) return made.error();
  return FileDisk(directory);
}

FileDisk FileDisk::read_only(const std::string& directory) {
  FileDisk disk(directory);
  disk.read_only_ = true;
  return disk;
}

Result<void> FileDisk::write(const std::string& name, std::uint64_t offset, BytesView bytes) {
  const std::string path = path_of(name);
  if (read_only_) return failed("write", path, EROFS);
  const Descriptor file(path, O_WRONLY | O_CREAT);
  if (file.get() < 0) return failed("write", path, errno);
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return failed("write", path, n < 0 ? errno : EIO);
    offset += static_cast<std::uint64_t>(n);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Result<Bytes> FileDisk::read(const std::string& name, std::uint64_t offset, std::size_t size) const {
  const std::string path = path_of(name);
  const Descriptor file(path, O_RDONLY);
  if (file.get() < 0) return failed("read", path, errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return failed("read", path, errno);
  const auto bytes_there = static_cast<std::uint64_t>(status.st_size);
  if (offset > bytes_there || bytes_there - offset < size)
    return Error{Errc::io, str("cannot read ", path, ": it is shorter than expected")};
  Bytes bytes(size);
  for (std::size_t done = 0; done < size;) {
    const ssize_t n =
        ::pread(file.get(), bytes.data() + done, size - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return failed("read", path, n < 0 ? errno : EIO);
    done += static_cast<std::size_t>(n);
  }
  return bytes;
}

std::uint64_t FileDisk::size(const std::string& name) const {
  std::error_code error;
  const auto size = std::filesystem::file_size(path_of(name), error);
  return error ? 0 : size;
}

void FileDisk::remove(const std::string& name) {
  if (!read_only_) ::unlink(path_of(name).c_str());
}

std::vector<std::string> FileDisk::list() const {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory_, error))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace rumor::daemon
