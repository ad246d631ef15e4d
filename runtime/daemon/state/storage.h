// Files of a state directory: whole or not at all, and never two processes in one.
//
//   lock            held (flock) while a process uses the directory; its text is the process id
//   checkpoint.1    the newest checkpoint
//   checkpoint.2    the previous checkpoint
//   *.tmp           a write that a crash cut short; ignored and overwritten
//
// A write goes to a temporary file, is synced to disk, and only then takes the name (rename is atomic); then the
// directory is synced too. So a crash, a full disk or a power failure leaves the old content or the new one.
//
// Thread: any; callers must not write to one path at the same time. Errors: Errc::io with the path and the system's
// reason, Errc::not_found if the file does not exist, Errc::corrupt, Errc::limit.
#pragma once

#include <functional>
#include <string>

#include "runtime/base/limits.h"
#include "runtime/base/result.h"
#include "runtime/base/types.h"

namespace rumor::daemon {

// All bytes of a regular file; a file larger than `bytes_max` is refused before it is read.
Result<Bytes> read_file(const std::string& path, std::size_t bytes_max = limits::snapshot_bytes_max);

// Creates or replaces `path`. On an error the old content stays and no temporary file is left.
Result<void> write_atomically(const std::string& path, BytesView bytes);

// Creates `path` and missing folders above it. An existing folder is no error.
// Gives a file that was written beside it its name: synced first, so that the name never leads to a part of it. Errors:
// Errc::io; `temporary` is removed then.
Result<void> publish_file(const std::string& temporary, const std::string& path);

Result<void> make_directory(const std::string& path);

// The right to use a state directory, for as long as this lives. The system takes it back when the process
// dies, however it dies: a left-over lock file blocks nobody.
class StateLock {
 public:
  // Makes the directory if needed. Error when another process holds it: "state directory DIR is in use by
  // process 123; stop that one, or choose another with --state".
  static Result<StateLock> acquire(const std::string& directory);

  StateLock(StateLock&& other) noexcept;
  StateLock& operator=(StateLock&& other) noexcept;
  ~StateLock();

 private:
  explicit StateLock(int file) : file_(file) {}
  int file_ = -1;
};

// ---- checkpoints: the newest two are kept ----

// Writes checkpoint.1; the old checkpoint.1 becomes checkpoint.2. At every moment one whole checkpoint has its name. On
// an error both stay unchanged.
Result<void> save_checkpoint(const std::string& directory, BytesView bytes);

struct LoadedCheckpoint {
  Bytes bytes;
  std::string note;  // empty, or one line on why the newest was passed over
};

// Whether bytes are a checkpoint that the caller can use; the error is its reason.
using CheckpointValidator = std::function<Result<void>(BytesView)>;

// Returns the newest checkpoint that `valid` accepts. An Errc::mismatch from `valid` (a whole checkpoint of another
// run)
// ends the search and is returned: continuing would overwrite that checkpoint. Other errors: Errc::not_found if there
// is no checkpoint at all (a fresh directory); otherwise the newest one's code, with the reason of each: damage is
// never mistaken for a fresh directory.
Result<LoadedCheckpoint> load_checkpoint(const std::string& directory, const CheckpointValidator& valid);

}  // namespace rumor::daemon
