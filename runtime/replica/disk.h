// Disk: named files that a node keeps beside its checkpoint, as the core sees them. The core opens none by
// itself: runtime/daemon/state/file_disk.h is the real one, MemoryDisk the simulator's.
//
// Writes do not wait for the platter. Bytes that a killed process has written are there when it starts again. A power
// cut may take some; readers notice, since they check all that they read.
//
// Thread: one owner, the protocol thread. A call takes as long as the system needs to take the bytes into its
// cache. Errors: Errc::io with the path and the system's reason, Errc::not_found.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/types.h"

namespace rumor {

class Disk {
 public:
  virtual ~Disk() = default;

  // Makes the file where there is none. Bytes before `offset` that were never written read as zeros.
  virtual Result<void> write(const std::string& name, std::uint64_t offset, BytesView bytes) = 0;
  // Exactly `size` bytes; Errc::io when there are fewer.
  virtual Result<Bytes> read(const std::string& name, std::uint64_t offset, std::size_t size) const = 0;
  virtual std::uint64_t size(const std::string& name) const = 0;  // 0 when there is none
  virtual void remove(const std::string& name) = 0;
  virtual std::vector<std::string> list() const = 0;  // in ascending order
};

// Files in memory. Copyable: a disk image.
class MemoryDisk final : public Disk {
 public:
  Result<void> write(const std::string& name, std::uint64_t offset, BytesView bytes) override;
  Result<Bytes> read(const std::string& name, std::uint64_t offset, std::size_t size) const override;
  std::uint64_t size(const std::string& name) const override;
  void remove(const std::string& name) override { files.erase(name); }
  std::vector<std::string> list() const override;

  std::map<std::string, Bytes> files;
  bool full = false;  // writes fail
};

}  // namespace rumor
