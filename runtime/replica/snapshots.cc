#include "runtime/replica/snapshots.h"

#include <algorithm>
#include <cstring>

#include "compress/payload/recorded.h"
#include "runtime/base/check.h"
#include "runtime/base/limits.h"
#include "runtime/base/sha256.h"
#include "runtime/base/text.h"
#include "runtime/replica/checkpoint.h"

namespace rumor {

namespace {

// The work of one advance_cut(), in bytes of copying; never more than a quarter of all. The factors are the cost of
// other work in comparison. Pending entries that it applies are bounded likewise.
constexpr std::size_t work_bytes_max = 4 << 20, hash_factor = 6, entry_bytes = 64, decode_factor = 8;
constexpr std::uint64_t applied_at_a_time = work_bytes_max / entry_bytes;
const std::string manifest_file = "join.manifest", chunks_file = "join.chunks";

using Chunk = std::vector<std::int32_t>;

BytesView bytes_of(std::span<const std::int32_t> weights) {
  return {reinterpret_cast<const std::uint8_t*>(weights.data()), weights.size_bytes()};
}

// weights[i - first] -= the change of `update` at i, for first <= i < first + weights.size(). Returns how many entries.
std::size_t take_back_within(const ParamLayout& layout, const compress::SparseUpdate& update, std::uint64_t first,
                      std::span<std::int32_t> weights) {
  const std::size_t begin = compress::first_entry(update.index, first),
                    end = compress::first_entry(update.index, first + weights.size());
  for (const compress::StepRun& run : compress::step_runs(layout, update)) {
    const compress::EntryRun entries{update.index.data() + run.first, update.negative.data() + run.first,
                                     run.count, static_cast<std::uint32_t>(run.step)};
    for (std::size_t e = std::max(begin, run.first); e < std::min(end, run.first + run.count); ++e) {
      std::int32_t& weight = weights[update.index[e] - first];
      weight = static_cast<std::int32_t>(static_cast<std::uint32_t>(weight) - entries.change(e - run.first));
    }
  }
  return end - begin;
}

class ReplicaCut final : public gossip::Cut {
 public:
  ReplicaCut(gossip::Manifest manifest, std::vector<Chunk> chunks, std::uint64_t period)
      : manifest_(std::move(manifest)),
        encoded_(manifest_.encode()),
        hash_(sha256(encoded_)),
        chunks_(std::move(chunks)),
        period_(period) {}

  const gossip::Manifest& manifest() const override { return manifest_; }
  const Bytes& encoded_manifest() const override { return encoded_; }
  const Hash256& hash() const override { return hash_; }
  Bytes chunk(std::uint32_t number) const override { return pack_chunk(chunks_[number]); }
  std::uint64_t period() const override { return period_; }

 private:
  gossip::Manifest manifest_;
  Bytes encoded_;
  Hash256 hash_;
  std::vector<Chunk> chunks_;
  std::uint64_t period_;
};

}  // namespace

// A cut on its way.
struct Snapshots::Making {
  gossip::HaveSet names;
  std::uint64_t fingerprint = 0, samples = 0, period = 0;
  std::set<gossip::Revocation> revocations;
  std::vector<UpdateKey> undo;  // held, and not in the cut
  std::optional<compress::SparseUpdate> undoing;  // one of them,
  std::size_t undone = 0;                         // taken back from so many chunks
  std::vector<Chunk> chunks;
  std::uint64_t copied = 0;  // weights
  std::uint64_t sum = 0;     // fingerprint of the chunks hashed so far
  std::vector<Hash256> hashes;
};

Snapshots::Snapshots(RunForm form, Replica& replica, const UpdateLog& log, Install install)
    : form_(std::move(form)),
      bytes_(std::uint64_t{4} * form_.layout.params()),
      chunk_weights_(gossip::chunk_bytes_of(bytes_) / sizeof(std::int32_t)),
      replica_(replica),
      log_(log),
      install_(std::move(install)) {}
Snapshots::~Snapshots() = default;

// ---- making ----

Result<void> Snapshots::begin_cut(const gossip::HaveSet* names) {
  drop_cut();
  auto making = std::make_unique<Making>();
  making->names = names != nullptr ? *names : replica_.have();
  making->fingerprint = replica_.fingerprint();
  making->samples = replica_.samples();
  making->period = replica_.period();
  making->revocations = replica_.revocations();
  const gossip::HaveSet later = making->names.missing_from(replica_.have());
  const Error too_far{Errc::limit, "it cannot go back to that cut any more"};
  if (later.count() > limits::cut_undo_updates_max) return too_far;
  std::size_t bytes = 0;
  for (const auto& [stream, ranges] : later.streams()) {
    for (const gossip::SeqRange& range : ranges) {
      for (std::uint64_t seq = range.first; seq <= range.last; ++seq) {
        const auto header = log_.header({stream, seq});
        if (!header) return too_far;
        making->fingerprint = Fingerprinter::minus(making->fingerprint, header->fingerprint);
        making->samples -= header->samples;
        bytes += log_.payload_bytes({stream, seq});
        if (bytes > limits::cut_undo_bytes_max) return too_far;
        making->undo.push_back({stream, seq});
      }
    }
  }
  making_ = std::move(making);
  replica_.begin_copy();
  return {};
}

void Snapshots::drop_cut() {
  if (making_) give_up();
  cut_.reset();
}

bool Snapshots::give_up() {
  making_.reset();
  replica_.end_copy();
  while (!replica_.forget_copied()) continue;
  return true;
}

bool Snapshots::advance_cut() {
  if (!making_) return true;
  for (std::size_t done = 0; done < std::min<std::uint64_t>(work_bytes_max, bytes_ / 4);) {
    std::size_t did = 0;
    if (making_->copied < form_.layout.params()) {
      did = copy_piece();
    } else if (!replica_.forget_copied()) {
      did = work_bytes_max;
    } else if (making_->undoing || !making_->undo.empty()) {
      did = undo_piece();
    } else if (making_->hashes.size() < making_->chunks.size()) {
      did = hash_chunk();
    } else {
      finish();
      return true;
    }
    if (did == 0) return give_up();
    done += did;
  }
  return false;
}

std::size_t Snapshots::copy_piece() {
  Making& making = *making_;
  if (!replica_.apply_some(applied_at_a_time)) return work_bytes_max;
  const std::span<const std::int32_t> weights = replica_.weights();  // all that came is on them now
  const std::size_t count = std::min<std::size_t>(chunk_weights_, weights.size() - making.copied);
  const auto piece = weights.subspan(making.copied, count);
  making.chunks.emplace_back(piece.begin(), piece.end());
  std::size_t entries = 0;
  for (const compress::SharedUpdate& update : replica_.since_copy())
    entries += take_back_within(form_.layout, *update, making.copied, making.chunks.back());
  making.copied += count;
  if (making.copied == weights.size()) replica_.end_copy();
  return count * sizeof(std::int32_t) + entries * entry_bytes;
}

// 0: the log no longer has it.
std::size_t Snapshots::undo_piece() {
  Making& making = *making_;
  if (!making.undoing) {
    const auto update = log_.find(making.undo.back());
    making.undo.pop_back();
    if (!update) return 0;
    auto entries = compress::decode(form_.layout, compress::update_part(*update->payload));
    if (!entries) return 0;
    making.undoing = std::move(entries).value();
    making.undone = 0;
    return 1 + update->payload->size() * decode_factor;
  }
  const std::size_t c = making.undone++;
  const std::size_t entries = take_back_within(form_.layout, *making.undoing, c * chunk_weights_, making.chunks[c]);
  if (making.undone == making.chunks.size()) making.undoing.reset();
  return 1 + entries * entry_bytes;
}

// Requires: all is copied and taken back.
std::size_t Snapshots::hash_chunk() {
  Making& making = *making_;
  const std::size_t number = making.hashes.size();
  const Chunk& chunk = making.chunks[number];
  making.hashes.push_back(sha256(bytes_of(chunk)));
  const auto first = static_cast<std::uint32_t>(number * chunk_weights_);
  making.sum = Fingerprinter::add(making.sum, replica_.fingerprinter().of_weights(chunk, first));
  return chunk.size() * sizeof(std::int32_t) * hash_factor;
}

void Snapshots::finish() {
  const std::unique_ptr<Making> made = std::move(making_);
  // Other weights than the updates give, or a revocation meanwhile: no cut that anybody could check.
  if (made->sum != made->fingerprint || made->revocations != replica_.revocations()) return;
  gossip::Manifest manifest;
  manifest.bytes = bytes_;
  manifest.head = encode_head(made->fingerprint, made->samples);
  manifest.names = std::move(made->names);
  manifest.chunks = std::move(made->hashes);
  cut_ = std::make_shared<const ReplicaCut>(std::move(manifest), std::move(made->chunks), made->period);
}

// ---- the head of a manifest: run [16], layout's hash [32], grid u8, fingerprint u64, samples u64,
// revocations ----

Bytes Snapshots::encode_head(std::uint64_t fingerprint, std::uint64_t samples) const {
  ByteWriter out;
  out.raw(form_.run.view());
  out.raw(form_.layout.hash().view());
  out.u8(static_cast<std::uint8_t>(form_.grid_bits));
  out.u64(fingerprint);
  out.u64(samples);
  write_revocations(out, replica_.revocations());
  return out.take();
}

Result<Snapshots::IntakeHead> Snapshots::decode_head(BytesView bytes) const {
  ByteReader in(bytes);
  if (in.id<RunId>() != form_.run) return Error{Errc::mismatch, "it is of another run"};
  const auto layout = in.id<Hash256>();
  const std::uint8_t grid = in.u8();
  if (layout != form_.layout.hash() || grid != form_.grid_bits)
    return Error{Errc::mismatch, "it is of a model of another shape"};
  IntakeHead head;
  head.fingerprint = in.u64();
  head.samples = in.u64();
  if (!read_revocations(in, head.revocations) || !in.done())
    return Error{Errc::corrupt, "what it says of itself is damaged"};
  return head;
}

// ---- taking ----

Result<void> Snapshots::begin_intake(const gossip::Manifest& manifest) {
  auto head = decode_head(manifest.head);
  if (!head) return head.error();
  if (manifest.bytes != bytes_) return Error{Errc::mismatch, "it has another number of weights"};
  drop_intake();
  intake_ = manifest;
  intake_head_ = std::move(head).value();
  weights_.resize(form_.layout.params());
  held_.assign(manifest.chunks.size(), false);
  if (disk_ != nullptr)
    (void)disk_->write(manifest_file, 0, manifest.encode());  // else a restart begins anew
  return {};
}

Result<void> Snapshots::take_chunk(std::uint32_t number, BytesView packed) {
  RUMOR_CHECK(intake_ && number < held_.size());
  const std::size_t first = number * chunk_weights_;
  const std::size_t count = std::min(chunk_weights_, weights_.size() - first);
  const std::span<std::int32_t> chunk = std::span(weights_).subspan(first, count);
  if (auto unpacked = unpack_chunk(packed, chunk); !unpacked) return unpacked;
  if (sha256(bytes_of(chunk)) != intake_->chunks[number])
    return Error{Errc::corrupt, str("chunk ", number, " does not have the hash of its manifest")};
  held_[number] = true;
  if (disk_ != nullptr) (void)disk_->write(chunks_file, first * sizeof(std::int32_t), bytes_of(chunk));
  return {};
}

Result<void> Snapshots::install(std::uint64_t period) {
  RUMOR_CHECK(intake_);
  ReplicaState state;
  state.weights = std::move(weights_);
  state.have = std::move(intake_->names);
  state.fingerprint = intake_head_.fingerprint;
  state.samples = intake_head_.samples;
  state.period = std::max(period, replica_.period());
  state.revocations = std::move(intake_head_.revocations);
  drop_intake();
  drop_cut();
  return install_(std::move(state));
}

void Snapshots::drop_intake() {
  intake_.reset();
  weights_ = LargeVector<std::int32_t>();  // {} would keep its memory
  held_.clear();
  if (disk_ == nullptr) return;
  disk_->remove(manifest_file);
  disk_->remove(chunks_file);
}

void Snapshots::open(Disk& disk) {
  disk_ = &disk;
  const std::uint64_t size = disk.size(manifest_file);
  if (size == 0 || size > limits::manifest_bytes_max) return;
  const auto bytes = disk.read(manifest_file, 0, size);
  auto manifest = bytes ? gossip::Manifest::decode(*bytes) : Result<gossip::Manifest>(bytes.error());
  auto head = manifest ? decode_head(manifest->head) : Result<IntakeHead>(manifest.error());
  if (!head || manifest->bytes != bytes_) return drop_intake();
  intake_ = std::move(manifest).value();
  intake_head_ = std::move(head).value();
  weights_.resize(form_.layout.params());
  held_.assign(intake_->chunks.size(), false);
  for (std::size_t n = 0; n < held_.size(); ++n) {
    const std::size_t first = n * chunk_weights_;
    const std::span<std::int32_t> chunk =
        std::span(weights_).subspan(first, std::min(chunk_weights_, weights_.size() - first));
    const auto kept = disk.read(chunks_file, first * sizeof(std::int32_t), chunk.size_bytes());
    if (!kept || sha256(*kept) != intake_->chunks[n]) continue;
    std::memcpy(chunk.data(), kept->data(), kept->size());
    held_[n] = true;
  }
}

}  // namespace rumor
