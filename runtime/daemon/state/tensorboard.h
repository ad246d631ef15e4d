// TensorBoardLog: scalars of a run as TensorBoard reads them, one event file a life of the process.
//
// The file is a row of TFRecords (length, its masked CRC-32C, data, its masked CRC-32C; all little-endian), each an
// Event in Protocol Buffers encoding (tensorboard/compat/proto/event.proto): wall_time = 1, step = 2, file_version =
// 3, summary = 5 with value = 1 {tag = 1, simple_value = 2}. The steps of the axis are samples of the whole run, so
// that curves of peers, and of runs with other numbers of peers, lie over each other.
//
// Thread: one owner.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/node/node_status.h"

namespace rumor::daemon {

class TensorBoardLog {
 public:
  // Begins DIRECTORY/events.out.tfevents.SECONDS.HOST.PROCESS, making the directory. Errors: Errc::io.
  static Result<TensorBoardLog> open(const std::string& directory, double unix_seconds);

  // Writes what is new: test loss and accuracy of each evaluation; every two seconds loss of own batches, learning
  // rate, live peers, staleness, bytes sent and received, and how many times smaller than dense. Errors: Errc::io.
  Result<void> observe(double unix_seconds, const NodeStatus& status);

  const std::string& path() const { return path_; }

 private:
  using Scalars = std::vector<std::pair<std::string_view, double>>;
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  TensorBoardLog(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}
  Result<void> write(const std::string& event);

  std::string path_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  std::uint64_t evaluations_ = 0;
  double next_ = 0;
};

}  // namespace rumor::daemon
