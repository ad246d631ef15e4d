// FileDisk: the Disk of a daemon: files of one directory.
//
// A write goes to the system's cache and is not forced to the platter: a killed process loses nothing, a
// power cut the last seconds, which their readers notice. A missing or foreign directory shows as an error of
// each call.
//
// Thread: one owner; no state but the directory's name. Errors: as Disk says, with the path.
#pragma once

#include <string>

#include "runtime/replica/disk.h"

namespace rumor::daemon {

class FileDisk final : public Disk {
 public:
  // Makes the directory. Errors: Errc::io.
  static Result<FileDisk> open(const std::string& directory);
  // For looking at the files of a peer that may be running: refuses writes, removes nothing.
  static FileDisk read_only(const std::string& directory);

  Result<void> write(const std::string& name, std::uint64_t offset, BytesView bytes) override;
  Result<Bytes> read(const std::string& name, std::uint64_t offset, std::size_t size) const override;
  std::uint64_t size(const std::string& name) const override;
  void remove(const std::string& name) override;
  std::vector<std::string> list() const override;

 private:
  explicit FileDisk(std::string directory) : directory_(std::move(directory)) {}
  std::string path_of(const std::string& name) const { return directory_ + "/" + name; }

  std::string directory_;
  bool read_only_ = false;
};

}  // namespace rumor::daemon
