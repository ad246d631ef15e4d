#include "runtime/daemon/state/tensorboard.h"

#include <unistd.h>

#include <bit>
#include <cerrno>
#include <climits>
#include <cstring>

#include "compress/payload/crc32c.h"
#include "runtime/base/text.h"
#include "runtime/daemon/state/storage.h"

namespace rumor::daemon {
namespace {

constexpr double seconds_between = 2;

template <class Word>
void little_endian(std::string& out, Word word) {
  for (std::size_t i = 0; i < sizeof word; ++i) out.push_back(static_cast<char>(word >> (8 * i)));
}

// ---- Protocol Buffers: the few forms that an Event needs ----

void varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

enum WireType : std::uint8_t { plain = 0, eight_bytes = 1, counted = 2, four_bytes = 5 };

void key(std::string& out, unsigned field, WireType type) {
  varint(out, field << 3 | type);
}

void text_field(std::string& out, unsigned field, std::string_view text) {
  key(out, field, counted);
  varint(out, text.size());
  out.append(text);
}

std::string event_head(double unix_seconds) {
  std::string out;
  key(out, 1, eight_bytes);
  little_endian(out, std::bit_cast<std::uint64_t>(unix_seconds));
  return out;
}

std::string scalar_event(double unix_seconds, std::uint64_t step,
                         const std::vector<std::pair<std::string_view, double>>& scalars) {
  std::string out = event_head(unix_seconds), summary;
  key(out, 2, plain);
  varint(out, step);
  for (const auto& [tag, number] : scalars) {
    std::string value;
    text_field(value, 1, tag);
    key(value, 2, four_bytes);
    little_endian(value, std::bit_cast<std::uint32_t>(static_cast<float>(number)));
    text_field(summary, 1, value);
  }
  text_field(out, 5, summary);
  return out;
}

// ---- TFRecord ----

// A checksum of data that holds checksums itself would be weak, so TFRecord stores it rotated, plus a constant.
std::uint32_t masked_crc(std::string_view data) {
  const std::uint32_t crc = compress::crc32c({reinterpret_cast<const std::uint8_t*>(data.data()), data.size()});
  return std::rotr(crc, 15) + 0xa282'ead8u;
}

std::string record(std::string_view data) {
  std::string out;
  little_endian(out, static_cast<std::uint64_t>(data.size()));
  little_endian(out, masked_crc(out));
  out.append(data);
  little_endian(out, masked_crc(data));
  return out;
}

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = "host";
  gethostname(name, HOST_NAME_MAX);
  return name;
}

}  // namespace

Result<TensorBoardLog> TensorBoardLog::open(const std::string& directory, double unix_seconds) {
  if (auto made = make_directory(directory); !made) return made.error();
  const std::string path = str(directory, "/events.out.tfevents.", static_cast<std::uint64_t>(unix_seconds), ".",
                               host_name(), ".", getpid());
  std::FILE* file = std::fopen(path.c_str(), "wbe");
  if (file == nullptr) return Error{Errc::io, str("cannot write ", path, ": ", std::strerror(errno))};
  TensorBoardLog log(path, file);
  std::string version = event_head(unix_seconds);
  text_field(version, 3, "brain.Event:2");
  if (auto written = log.write(version); !written) return written.error();
  return log;
}

Result<void> TensorBoardLog::write(const std::string& event) {
  const std::string bytes = record(event);
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) == bytes.size() && std::fflush(file_.get()) == 0)
    return {};
  return Error{Errc::io, str("cannot write ", path_, ": ", std::strerror(errno))};
}

Result<void> TensorBoardLog::observe(double now, const NodeStatus& s) {
  const bool evaluated = s.training.evaluations != evaluations_ && s.training.loss;
  const bool due = now >= next_ && s.training.steps > 0;
  if (!evaluated && !due) return {};
  if (evaluated) evaluations_ = s.training.evaluations;
  if (due) next_ = now + seconds_between;
  std::vector<std::pair<std::string_view, double>> scalars;
  for (const FigureCurve& curve : curves_of(status_figures(s), &Figure::scalar))
    if (curve.value && (curve.name.starts_with("test/") ? evaluated : due))
      scalars.emplace_back(curve.name, *curve.value);
  return scalars.empty() ? Result<void>{} : write(scalar_event(now, s.samples, scalars));
}

}  // namespace rumor::daemon
