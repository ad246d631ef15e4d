#include "models/weights/safetensors_writer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "models/weights/float_formats.h"
#include "runtime/base/bytes.h"
#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::models {
namespace {

using Sink = std::function<void(BytesView)>;

constexpr std::size_t block_values = 4096;

FloatFormat format_of(const SafetensorsTensor& tensor) {
  const auto format = float_format(tensor.dtype);
  RUMOR_CHECK(format.has_value());
  return *format;
}

// Size of the header, and the header.
Bytes head_of(std::span<const SafetensorsTensor> tensors, const SafetensorsMetadata& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t at = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    std::uint64_t elements = 1;
    for (const std::uint32_t extent : tensor.shape) elements *= extent;
    RUMOR_CHECK((!tensor.bytes.empty() || elements == tensor.values.size()) && !header.contains(tensor.name));
    const std::uint64_t end = at + tensor.file_bytes();
    header[tensor.name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data is aligned
  ByteWriter out;
  out.u64(text.size());
  out.raw({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  return out.take();
}

// The largest value that the format rounds to a finite one, roughly: checked before rounding.
bool fits(FloatFormat format, float value) {
  if (!std::isfinite(value)) return true;  // not made infinite here
  if (format == FloatFormat::f16) return (f16_of(value) & 0x7fff) < 0x7c00;
  if (format == FloatFormat::bf16) return (bf16_of(value) & 0x7fff) < 0x7f80;
  return true;
}

Result<void> emit_values(const SafetensorsTensor& tensor, const Sink& sink) {
  const FloatFormat format = format_of(tensor);
  std::array<std::uint8_t, 8 * block_values> bytes{};
  for (std::size_t at = 0; at < tensor.values.size(); at += block_values) {
    const auto block = tensor.values.subspan(at, std::min(block_values, tensor.values.size() - at));
    const auto* const wide =
        std::find_if(block.data(), block.data() + block.size(), [&](float value) { return !fits(format, value); });
    if (wide != block.data() + block.size())
      return Error{Errc::limit, str("tensor ", tensor.name, " holds ", *wide, ", which ", tensor.dtype,
                                    " cannot hold; write F32 or BF16")};
    const auto out = std::span(bytes).first(block.size() * bytes_of(format));
    write_floats(format, block, out);
    sink(out);
  }
  return {};
}

Result<void> emit(std::span<const SafetensorsTensor> tensors, const SafetensorsMetadata& metadata, const Sink& sink) {
  sink(head_of(tensors, metadata));
  for (const SafetensorsTensor& tensor : tensors) {
    if (!tensor.values.empty())
      if (auto written = emit_values(tensor, sink); !written) return written;
    sink(tensor.bytes);
  }
  return {};
}

}  // namespace

std::uint64_t SafetensorsTensor::file_bytes() const {
  return values.empty() ? bytes.size() : values.size() * bytes_of(format_of(*this));
}

Bytes safetensors_bytes(std::span<const SafetensorsTensor> tensors, const SafetensorsMetadata& metadata) {
  ByteWriter out;
  const auto written = emit(tensors, metadata, [&out](BytesView bytes) { out.raw(bytes); });
  RUMOR_CHECK(written.ok());
  return out.take();
}

Result<void> write_safetensors_part(const std::string& path, std::span<const SafetensorsTensor> tensors,
                                    const SafetensorsMetadata& metadata) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  auto written = emit(tensors, metadata, [&out](BytesView bytes) {
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  });
  out.close();
  if (written && !out)
    written = Error{Errc::io, str("cannot write ", path, ": is the folder there, and is there room?")};
  std::error_code ignored;
  if (!written) std::filesystem::remove(path, ignored);
  return written;
}

Result<void> write_safetensors(const std::string& path, std::span<const SafetensorsTensor> tensors,
                               const SafetensorsMetadata& metadata) {
  const std::string beside = path + ".part";
  if (auto written = write_safetensors_part(beside, tensors, metadata); !written) return written;
  std::error_code failure, ignored;
  std::filesystem::rename(beside, path, failure);
  if (!failure) return {};
  std::filesystem::remove(beside, ignored);
  return Error{Errc::io, str("cannot write ", path, ": ", failure.message())};
}

}  // namespace rumor::models
