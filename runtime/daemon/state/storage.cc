#include "runtime/daemon/state/storage.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "runtime/base/text.h"

namespace rumor::daemon {
namespace {

constexpr std::size_t write_bytes_max = 1 << 20;  // of one system call

// An open file that closes itself.
class File {
 public:
  File(const std::string& path, int flags, mode_t mode = 0644)
      : descriptor_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_open() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

Error system_error(const std::string& what, const std::string& path, int number) {
  std::string fix;
  if (number == ENOSPC || number == EDQUOT || number == EFBIG) fix = "; make room and try again";
  if (number == EACCES || number == EPERM || number == EROFS)
    fix = "; check who owns it and who may write there";
  const Errc code = number == ENOENT ? Errc::not_found : Errc::io;
  return {code, str("cannot ", what, " ", path, ": ", std::strerror(number), fix)};
}

std::string parent_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

Result<void> sync_directory(const std::string& path) {
  const File directory(path, O_RDONLY | O_DIRECTORY);
  if (directory.is_open() && ::fsync(directory.get()) == 0) return {};
  if (directory.is_open() && errno == EINVAL) return {};  // this file system cannot sync a directory
  return system_error("write", path, errno);
}

// 0, or the number of the error.
int write_all(int file, BytesView bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file, bytes.data(), std::min(bytes.size(), write_bytes_max));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : EIO;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return 0;
}

// A whole file under `temporary`, on disk; on an error there is none. `path` is for the text.
Result<void> write_temporary(const std::string& temporary, const std::string& path, BytesView bytes) {
  int error = 0;
  {
    const File file(temporary, O_WRONLY | O_CREAT | O_TRUNC);
    if (!file.is_open()) return system_error("write", path, errno);
    error = write_all(file.get(), bytes);
    if (error == 0 && ::fsync(file.get()) != 0) error = errno;
  }
  if (error == 0) return {};
  ::unlink(temporary.c_str());
  return system_error("write", path, error);
}

Result<void> take_name(const std::string& temporary, const std::string& path) {
  if (::rename(temporary.c_str(), path.c_str()) == 0) return sync_directory(parent_of(path));
  const int error = errno;
  ::unlink(temporary.c_str());
  return system_error("write", path, error);
}

}  // namespace

Result<Bytes> read_file(const std::string& path, std::size_t bytes_max) {
  const File file(path, O_RDONLY | O_NONBLOCK);  // a FIFO of that name must not hang us
  if (!file.is_open()) return system_error("read", path, errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return system_error("read", path, errno);
  if (!S_ISREG(status.st_mode)) return Error{Errc::io, str("cannot read ", path, ": not a regular file")};
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size > bytes_max)
    return Error{Errc::limit,
                 str("cannot read ", path, ": ", size, " bytes are more than the limit of ", bytes_max)};
  Bytes bytes(size);
  std::size_t done = 0;
  while (done < size) {
    const ssize_t n = ::read(file.get(), bytes.data() + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("read", path, errno);
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  bytes.resize(done);
  return bytes;
}

Result<void> write_atomically(const std::string& path, BytesView bytes) {
  const std::string temporary = path + ".tmp";
  if (Result<void> written = write_temporary(temporary, path, bytes); !written) return written;
  return take_name(temporary, path);
}

Result<void> publish_file(const std::string& temporary, const std::string& path) {
  File file(temporary, O_RDWR);
  if (!file.is_open() || ::fsync(file.get()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    return system_error("write", path, error);
  }
  return take_name(temporary, path);
}

Result<void> make_directory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return Error{Errc::io, str("cannot make directory ", path, ": ", error.message())};
  return {};
}

// ---- the lock ----

Result<StateLock> StateLock::acquire(const std::string& directory) {
  if (Result<void> made = make_directory(directory); !made) return made.error();
  const std::string path = directory + "/lock";
  File file(path, O_RDWR | O_CREAT);
  if (!file.is_open()) return system_error("write", path, errno);
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return system_error("lock", path, errno);
    char text[24] = {};
    const ssize_t n = ::pread(file.get(), text, sizeof text - 1, 0);
    const std::string holder(text, n > 0 ? std::find(text, text + n, '\n') - text : 0);
    return Error{Errc::io, str("state directory ", directory, " is in use by ",
                               holder.empty() ? "another process" : "process " + holder,
                               "; stop that one, or choose another with --state")};
  }
  // The number only serves that message; a directory on a full disk can still be locked.
  const std::string number = str(::getpid(), '\n');
  if (::ftruncate(file.get(), 0) == 0 && ::pwrite(file.get(), number.data(), number.size(), 0) < 0) errno = 0;
  return StateLock(file.release());
}

StateLock::StateLock(StateLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

StateLock& StateLock::operator=(StateLock&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}

StateLock::~StateLock() {
  if (file_ >= 0) ::close(file_);  // which gives the lock back
}

// ---- checkpoints ----

Result<void> save_checkpoint(const std::string& directory, BytesView bytes) {
  const std::string newest = directory + "/checkpoint.1";
  const std::string older = directory + "/checkpoint.2";
  const std::string aside = older + ".tmp";
  if (Result<void> written = write_temporary(newest + ".tmp", newest, bytes); !written) return written;

  // A second name for the old checkpoint first, so that the new one can take its place in one step. Where
  // there are no hard links it moves aside, and for a moment checkpoint.2 is the only one with a name.
  ::unlink(aside.c_str());
  const bool linked = ::link(newest.c_str(), aside.c_str()) == 0;
  if (!linked && errno != ENOENT) {
    if (::rename(newest.c_str(), older.c_str()) != 0) {
      const int error = errno;
      ::unlink((newest + ".tmp").c_str());
      return system_error("replace", older, error);
    }
  }
  if (Result<void> named = take_name(newest + ".tmp", newest); !named) {
    ::unlink(aside.c_str());
    return named;
  }
  if (linked && ::rename(aside.c_str(), older.c_str()) != 0) {
    const int error = errno;
    ::unlink(aside.c_str());
    return system_error("replace", older, error);
  }
  return {};
}

Result<LoadedCheckpoint> load_checkpoint(const std::string& directory, const CheckpointValidator& valid) {
  std::optional<Error> first;
  std::string passed_over = "checkpoint.1 is missing";
  for (const std::string name : {"checkpoint.1", "checkpoint.2"}) {
    Result<Bytes> bytes = read_file(directory + "/" + name);
    if (!bytes && bytes.error().code == Errc::not_found) continue;
    const Result<void> fit = bytes.ok() ? valid(*bytes) : Result<void>(bytes.error());
    if (fit.ok()) {
      const bool newest = name == "checkpoint.1";
      return LoadedCheckpoint{std::move(*bytes),
                              newest ? "" : str(passed_over, "; going on from the older ", name)};
    }
    if (fit.error().code == Errc::mismatch) return fit.error();
    const std::string reason = str(name, " is of no use: ", fit.error().text);
    passed_over = first ? str(passed_over, "; ", reason) : reason;
    if (!first) first = fit.error();
  }
  if (!first) return Error{Errc::not_found, str("there is no checkpoint in ", directory)};
  return Error{first->code, str("no usable checkpoint in ", directory, ": ", passed_over)};
}

}  // namespace rumor::daemon
