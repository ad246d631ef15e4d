#include "models/data/idx.h"

#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "runtime/base/bytes.h"
#include "runtime/base/text.h"

namespace rumor::models {
namespace {

Error damaged(std::string_view file, std::size_t offset, const std::string& what) {
  return Error{Errc::corrupt, str(file, ", offset ", offset, ": ", what, "; fetch the file again")};
}

struct CloseGz {
  void operator()(gzFile_s* file) const { gzclose_r(file); }
};

// After gzread has failed: a damaged stream, or the system's refusal.
Error read_failed(gzFile_s* file, const std::string& path, std::size_t offset) {
  int code = Z_OK;
  const char* text = gzerror(file, &code);
  if (code == Z_ERRNO) return Error{Errc::io, str("cannot read ", path, ": ", std::strerror(errno))};
  return damaged(path, offset, str("the compressed data is damaged or cut short (", text, ")"));
}

}  // namespace

Result<IdxArray> parse_idx(BytesView bytes, std::string_view file) {
  if (bytes.size() < 4) return damaged(file, bytes.size(), "the file ends inside the 4-byte header");
  if (bytes[0] != 0 || bytes[1] != 0 || bytes[2] != 0x08)
    return damaged(file, 0, str("expected the IDX header 000008, found ", to_hex(bytes.first(3))));
  const std::uint32_t dimensions = bytes[3];
  if (dimensions < 1 || dimensions > idx_dimensions_max)
    return damaged(file, 3, str(dimensions, " dimensions, expected 1 to ", idx_dimensions_max));
  const std::size_t header = 4 + std::size_t{4} * dimensions;
  if (bytes.size() < header)
    return damaged(file, bytes.size(), str("the file ends inside its ", dimensions, " sizes"));
  IdxArray array;
  const std::uint64_t present = bytes.size() - header;
  std::uint64_t elements = 1;
  for (std::size_t at = 4; at < header; at += 4) {
    array.shape.push_back(big_endian(bytes, at));
    if (array.shape.back() == 0) return damaged(file, at, "a dimension of size 0");
  }
  for (const std::uint32_t extent : array.shape) {
    elements *= extent;  // elements <= present < 2^31 before, so this fits
    if (elements > present)
      return damaged(file, bytes.size(),
                     str("the file ends after ", present, " elements of at least ", elements));
  }
  if (elements < present)
    return damaged(file, static_cast<std::size_t>(header + elements),
                   str(present - elements, " bytes too many"));
  array.elements = bytes.subspan(header);
  return array;
}

Result<Bytes> read_data_file(const std::string& path) {
  errno = 0;
  std::unique_ptr<gzFile_s, CloseGz> file(gzopen(path.c_str(), "rb"));
  if (!file) return Error{Errc::io, str("cannot open ", path, ": ", std::strerror(errno))};
  gzbuffer(file.get(), 256 << 10);
  Bytes bytes;
  constexpr std::size_t piece = 4 << 20;
  for (std::size_t size = 0;;) {
    if (size + piece > bytes.capacity()) bytes.reserve(2 * bytes.capacity() + piece);
    bytes.resize(size + piece);
    const int got = gzread(file.get(), bytes.data() + size, static_cast<unsigned>(piece));
    if (got < 0) return read_failed(file.get(), path, size);
    size += static_cast<std::size_t>(got);
    if (size > idx_bytes_max)
      return Error{Errc::limit, str(path, " is over ", idx_bytes_max, " bytes when decompressed")};
    if (static_cast<std::size_t>(got) == piece) continue;
    int code = Z_OK;
    gzerror(file.get(), &code);  // a truncated stream reads short and reports it only here
    if (code != Z_OK) return read_failed(file.get(), path, size);
    bytes.resize(size);
    return bytes;
  }
}

}  // namespace rumor::models
