// PeerFiles: the files of a peer in its state directory, and its capture file.
//
//   DIR/lock           held while a process uses the directory
//   DIR/identity.pem   the key that is the peer's identity
//   DIR/checkpoint.1   newest checkpoint, .2 the one before (runtime/CHECKPOINT.md)
//   DIR/contributions  who trained how much, saved with the checkpoint (runtime/contributions/contributions.h)
//   DIR/buffers.json   names, types and shapes of a program's own buffers, which the checkpoint holds
//   DIR/addresses      host:port of members met, one a line: so that every seed may die
//   DIR/start          with a checkpoint: the weights that its run began with (runtime/run/run_identity.h)
//   DIR/parts          with a checkpoint: hashes of what makes its run (RunPart::hash), u32 each, to name what differs
//   DIR/config.json    description of the model (models/weights/model_json.h), for readers without the run file
//   DIR/stage.json     the stage that the peer serves, and its pipeline (gossip/PIPELINE.md)
//   DIR/adapter_config.json  that of adapters (models/weights/adapter_json.h), and where their base is
//   DIR/tokenizer.json the tokenizer of a text, as data.tokens names it
//   DIR/kept/          the update log and a download in progress (runtime/replica/disk.h)
//
// Thread: open, load, identity, capture from the protocol thread; save from the storage thread.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gossip/asio/identity.h"
#include "runtime/base/run_part.h"
#include "runtime/daemon/state/file_disk.h"
#include "runtime/daemon/state/storage.h"
#include "runtime/replica/run_form.h"

namespace rumor::daemon {

class PeerFiles {
 public:
  // No directory: nothing is kept, the identity lasts as long as the process. Errors: Errc::io (not writable,
  // in use).
  static Result<PeerFiles> open(const std::optional<std::string>& directory);

  // For log and downloads; null without a directory.
  Disk* disk() { return disk_ ? &*disk_ : nullptr; }
  // Kept in the directory, or made for this process alone.
  Result<net::Identity> identity() const;
  std::vector<std::string> known_addresses() const;
  // More of them, from elsewhere.
  void add_known(const std::vector<std::string>& addresses) { more_known_ = addresses; }
  // Offers the newest checkpoint, then the one before, to `restore`. Returns one line about it, empty when
  // there is none. Damaged ones are passed over with a word. Errors: Errc::mismatch (it is of another run:
  // nothing may be overwritten).
  Result<std::string> load(const std::function<Result<void>(BytesView)>& restore) const;
  // The first checkpoint writes this to `start`.
  void note_start(Bytes note) { start_ = std::move(note); }
  // The first checkpoint writes the hashes of these, the parts of this peer's run, to `parts`.
  void note_parts(std::vector<RunPart> parts) { parts_ = std::move(parts); }
  // For Errc::mismatch: with a word on what this run has and that of the directory has not, where `parts` can say it.
  Error with_unlike_parts(Error error) const;
  static std::vector<std::uint32_t> parts_of(const std::string& directory);
  // The note in a state directory, which this process need not hold; nothing if there is none.
  static std::optional<Bytes> start_of(const std::string& directory);
  // Writes config.json, tokenizer.json, buffers.json or stage.json, unless it says so already. Without a directory, or
  // a text: nothing.
  // Errors: Errc::io.
  Result<void> describe(const std::string& name, const std::string& text) const;
  // Saves a checkpoint, the table of contributions (empty: none), and the addresses of other peers, one a line. With
  // no addresses the old file stays: a process that has met no peer may leave it to the next process.
  Result<void> save(BytesView checkpoint, BytesView contributions, const std::string& addresses) const;
  // The table in a state directory, which this process need not hold; nothing if there is none.
  static std::optional<Bytes> contributions_of(const std::string& directory);

  // Errors: Errc::io.
  Result<void> open_capture(const std::optional<std::string>& path, const RunForm& form);
  void capture(BytesView payload);

  const std::string& directory() const { return directory_; }  // empty: none

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  Result<void> write_once(const std::string& name, BytesView bytes) const;

  std::string directory_;
  std::vector<std::string> more_known_;
  Bytes start_;
  std::vector<RunPart> parts_;
  std::optional<StateLock> lock_;
  std::optional<FileDisk> disk_;
  std::unique_ptr<std::FILE, CloseFile> capture_;
};

}  // namespace rumor::daemon
