// RotatingFile: a log of bounded size. FILE is the newest. When it would grow beyond 8 MiB, it becomes FILE.1, the old
// FILE.1 becomes FILE.2, and so on to FILE.4; the old FILE.4 is deleted. Writes are not synced to disk.
//
// Thread: one owner.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace rumor::daemon {

class RotatingFile {
 public:
  static constexpr std::size_t default_bytes_max = 8 << 20;
  static constexpr int old_files = 4;

  // Continues at the end of an existing file. Errors: Errc::io.
  static Result<RotatingFile> open(const std::string& path, std::size_t bytes_max = default_bytes_max);

  // Whole, in one file. Errors: Errc::io (disk full, ...); a later call tries again.
  Result<void> append(std::string_view text);

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  RotatingFile(std::string path, std::size_t bytes_max) : path_(std::move(path)), bytes_max_(bytes_max) {}
  Result<void> reopen();
  void rotate();

  std::string path_;
  std::size_t bytes_max_, bytes_ = 0;
  std::unique_ptr<std::FILE, CloseFile> file_;
};

}  // namespace rumor::daemon
