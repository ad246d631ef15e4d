#include "runtime/daemon/state/peer_files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "runtime/base/bytes.h"
#include "runtime/base/limits.h"
#include "runtime/base/text.h"
#include "runtime/replica/capture.h"

namespace rumor::daemon {

namespace {
constexpr std::size_t addresses_bytes_max = 1 << 20;
}

Result<PeerFiles> PeerFiles::open(const std::optional<std::string>& directory) {
  PeerFiles files;
  if (!directory) return files;
  auto lock = StateLock::acquire(*directory);
  if (!lock) return lock.error();
  files.directory_ = *directory;
  files.lock_ = std::move(lock).value();
  auto disk = FileDisk::open(*directory + "/kept");
  if (!disk) return disk.error();
  files.disk_ = std::move(disk).value();
  return files;
}

Result<net::Identity> PeerFiles::identity() const {
  if (directory_.empty()) return net::Identity::ephemeral();
  return net::Identity::load_or_create(directory_ + "/identity.pem");
}

std::vector<std::string> PeerFiles::known_addresses() const {
  std::vector<std::string> addresses = more_known_;
  if (directory_.empty()) return addresses;
  const auto text = read_file(directory_ + "/addresses", addresses_bytes_max);
  if (!text) return addresses;  // a convenience: without it the seeds are tried
  std::string line;
  for (std::uint8_t c : *text) {
    if (c != '\n') {
      line.push_back(static_cast<char>(c));
    } else if (!line.empty()) {
      addresses.push_back(std::move(line));
      line.clear();
    }
  }
  return addresses;
}

Result<std::string> PeerFiles::load(const std::function<Result<void>(BytesView)>& restore) const {
  if (directory_.empty()) return std::string();
  const auto loaded = load_checkpoint(directory_, restore);
  if (loaded) return loaded->note.empty() ? "going on from the checkpoint in " + directory_ : loaded->note;
  if (loaded.error().code == Errc::not_found) return std::string();
  Error error = loaded.error();
  if (error.code == Errc::corrupt)
    error.text += "; nothing was changed. To rejoin from the other peers, move the checkpoint files out of " +
                  directory_;
  return error;
}

Result<void> PeerFiles::describe(const std::string& name, const std::string& text) const {
  if (directory_.empty() || text.empty()) return {};
  return write_once(name, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

// Not where it says so already: a restart must not need room on the disk.
Result<void> PeerFiles::write_once(const std::string& name, BytesView bytes) const {
  const std::string path = directory_ + "/" + name;
  if (const auto kept = read_file(path); kept && std::equal(kept->begin(), kept->end(), bytes.begin(), bytes.end()))
    return {};
  return write_atomically(path, bytes);
}

std::optional<Bytes> PeerFiles::start_of(const std::string& directory) {
  auto note = read_file(directory + "/start", limits::start_note_bytes_max);
  if (!note) return std::nullopt;
  return std::move(note).value();
}

std::optional<Bytes> PeerFiles::contributions_of(const std::string& directory) {
  if (directory.empty()) return std::nullopt;
  auto table = read_file(directory + "/contributions");
  if (!table) return std::nullopt;
  return std::move(table).value();
}

std::vector<std::uint32_t> PeerFiles::parts_of(const std::string& directory) {
  std::vector<std::uint32_t> hashes;
  const auto bytes = read_file(directory + "/parts", limits::run_parts_max * sizeof(std::uint32_t));
  if (!bytes) return hashes;
  ByteReader in(*bytes);
  for (std::size_t i = 0; i < bytes->size() / sizeof(std::uint32_t); ++i) hashes.push_back(in.u32());
  return hashes;
}

Error PeerFiles::with_unlike_parts(Error error) const {
  if (directory_.empty() || error.code != Errc::mismatch) return error;
  const std::string unlike = unlike_parts(parts_, parts_of(directory_));
  if (!unlike.empty()) error.text += "; as for that run, " + unlike;
  return error;
}

// The table after the checkpoint: where it lacks updates of that, the log has most of them.
Result<void> PeerFiles::save(BytesView checkpoint, BytesView contributions, const std::string& addresses) const {
  if (directory_.empty()) return {};
  if (!start_.empty())
    if (auto noted = write_once("start", start_); !noted) return noted;
  ByteWriter hashes;
  for (const RunPart& part : std::span(parts_).first(std::min(parts_.size(), limits::run_parts_max)))
    hashes.u32(part.hash);
  if (auto noted = write_once("parts", hashes.bytes()); !noted) return noted;
  if (auto saved = save_checkpoint(directory_, checkpoint); !saved) return saved;
  if (!contributions.empty())
    if (auto saved = write_atomically(directory_ + "/contributions", contributions); !saved) return saved;
  if (addresses.empty()) return {};
  return write_atomically(directory_ + "/addresses",
                          {reinterpret_cast<const std::uint8_t*>(addresses.data()), addresses.size()});
}

Result<void> PeerFiles::open_capture(const std::optional<std::string>& path, const RunForm& form) {
  if (!path) return {};
  capture_.reset(std::fopen(path->c_str(), "wb"));
  if (!capture_) return Error{Errc::io, str("cannot write the capture ", *path, ": ", std::strerror(errno))};
  const Bytes head = encode_capture_head(form);
  std::fwrite(head.data(), 1, head.size(), capture_.get());
  return {};
}

void PeerFiles::capture(BytesView payload) {
  if (!capture_) return;
  const Bytes record = encode_capture_record(payload);
  // A full disk ends the capture, not the training.
  if (std::fwrite(record.data(), 1, record.size(), capture_.get()) != record.size()) capture_.reset();
}

}  // namespace rumor::daemon
