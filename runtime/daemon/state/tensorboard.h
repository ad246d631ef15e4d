// TensorBoardLog: scalars of a run as TensorBoard reads them, one event file for each life of the process.
//
// The file is a row of TFRecords (length, its masked CRC-32C, data, its masked CRC-32C; all little-endian), each an
// Event in Protocol Buffers encoding (tensorboard/compat/proto/event.proto): wall_time = 1, step = 2, file_version =
// 3, summary = 5 with value = 1 {tag = 1, simple_value = 2}. The axis is the samples of the whole run, so that
// the curves of different peers, and of runs with different numbers of peers, can be compared.
//
// Thread: one owner.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "runtime/base/result.h"
#include "runtime/node/node_status.h"

namespace rumor::daemon {

class TensorBoardLog {
 public:
  // Begins DIRECTORY/events.out.tfevents.SECONDS.HOST.PROCESS, making the directory. Errors: Errc::io.
  static Result<TensorBoardLog> open(const std::string& directory, double unix_seconds);

  // Writes the figures that have a scalar (runtime/base/figures.h): those named test/... after each evaluation, the
  // others every two seconds. Errors: Errc::io.
  Result<void> observe(double unix_seconds, const NodeStatus& status);

  const std::string& path() const { return path_; }

 private:
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
