#include "runtime/replica/disk.h"

#include <algorithm>

namespace rumor {

Result<void> MemoryDisk::write(const std::string& name, std::uint64_t offset, BytesView bytes) {
  if (full) return Error{Errc::io, "cannot write " + name + ": no space left on device"};
  Bytes& file = files[name];
  if (file.size() < offset + bytes.size()) file.resize(offset + bytes.size());
  std::copy(bytes.begin(), bytes.end(), file.begin() + static_cast<std::ptrdiff_t>(offset));
  return {};
}

Result<Bytes> MemoryDisk::read(const std::string& name, std::uint64_t offset, std::size_t size) const {
  const auto at = files.find(name);
  if (at == files.end()) return Error{Errc::not_found, "there is no " + name};
  const Bytes& file = at->second;
  if (offset > file.size() || file.size() - offset < size)
    return Error{Errc::io, name + " is shorter than that"};
  const BytesView piece = BytesView(file).subspan(offset, size);
  return Bytes(piece.begin(), piece.end());
}

std::uint64_t MemoryDisk::size(const std::string& name) const {
  const auto at = files.find(name);
  return at == files.end() ? 0 : at->second.size();
}

std::vector<std::string> MemoryDisk::list() const {
  std::vector<std::string> names;
  for (const auto& [name, file] : files) names.push_back(name);
  return names;
}

}  // namespace rumor
