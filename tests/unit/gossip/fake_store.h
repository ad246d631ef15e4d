// FakeStore: a replica without weights. Its log keeps payloads of any size until it is trimmed; the fingerprint is a
// sum over payloads, so equal sets have equal fingerprints, and a doubled or lost update shows.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>

#include "gossip/contract/blob_snapshots.h"
#include "runtime/base/prng.h"
#include "runtime/base/sha256.h"
#include "runtime/sim/world/sim_store.h"

namespace rumor::gossip::test {

// Coding::link counts the payloads of each direction and puts the number in front: the two ends of a link
// that does not stay in step fail at once. Coding::adapt turns the bytes over.
class FakeCoder final : public LinkCoder {
 public:
  Bytes encode(Coding coding, BytesView payload) override {
    if (coding == Coding::adapt) return {payload.rbegin(), payload.rend()};
    ByteWriter out;
    out.varint(++sent_);
    out.raw(payload);
    return out.take();
  }
  Result<Bytes> decode(Coding coding, BytesView bytes) override {
    if (coding == Coding::adapt) return Bytes(bytes.rbegin(), bytes.rend());
    ByteReader in(bytes);
    if (in.varint() != ++received_) return Error{Errc::corrupt, "the histories are out of step"};
    const BytesView payload = in.raw(in.remaining());
    return Bytes(payload.begin(), payload.end());
  }

 private:
  std::uint64_t sent_ = 0, received_ = 0;
};

class FakeStore final : public sim::PeerStore {
 public:
  FakeStore() = default;
  FakeStore(const FakeStore&) = delete;  // snapshots_ refers to it

  const HaveSet& have() const override { return have_; }

  ReplicaDigest digest() const override {
    if (stale_) {
      ByteWriter out;
      have_.encode(out);
      for (const Revocation& one : revocations_) write(out, one);
      if (lacks_weights_) out.text("no replica");
      digest_ = {sha256(out.bytes()), fingerprint_, have_.count()};
      stale_ = false;
    }
    return digest_;
  }

  bool lacks_weights() const override { return lacks_weights_; }
  void lose_weights() { lacks_weights_ = stale_ = true; }

  std::optional<StoredUpdate> find(const UpdateKey& key) const override {
    const auto at = log_.find(key);
    if (at == log_.end()) return std::nullopt;
    return at->second;
  }

  Result<Accepted> accept(const StoredUpdate& update) override {
    if (sha256(*update.payload) != update.header.payload_hash)
      return Error{Errc::corrupt, "payload does not match its hash"};
    for (const Revocation& one : revocations_)
      if (one.covers(update.header.key)) return Accepted::duplicate;
    if (!have_.insert(update.header.key)) return Accepted::duplicate;
    fingerprint_ += update.header.fingerprint;
    log_[update.header.key] = update;
    stale_ = true;
    return Accepted::applied;
  }

  const std::set<Revocation>& revocations() const override { return revocations_; }
  Result<void> revoke(const Revocation& revocation) override {
    std::vector<UpdateKey> keys;
    for (const auto& [stream, ranges] : have_.streams()) {
      for (const SeqRange& range : ranges) {
        for (std::uint64_t seq = range.first; seq <= range.last; ++seq)
          if (revocation.covers({stream, seq})) keys.push_back({stream, seq});
      }
    }
    for (const UpdateKey& key : keys)
      if (!log_.contains(key)) return Error{Errc::limit, "no longer kept"};
    for (const UpdateKey& key : keys) {
      fingerprint_ -= log_.at(key).header.fingerprint;
      have_.erase(key.stream, {key.seq, key.seq});
      log_.erase(key);
    }
    add_revocation(revocation, revocations_);
    stale_ = true;
    return {};
  }

  bool verify() const override { return !damaged_; }
  Result<void> take_back(const UpdateKey& key) override {
    const auto at = log_.find(key);
    if (at == log_.end()) return Error{Errc::limit, "no longer kept"};
    fingerprint_ -= at->second.header.fingerprint;
    have_.erase(key.stream, {key.seq, key.seq});
    log_.erase(at);
    stale_ = true;
    return {};
  }

  std::unique_ptr<LinkCoder> coder_for_link() const override { return std::make_unique<FakeCoder>(); }

  SnapshotPort& snapshots() override { return snapshots_; }

  static void write(ByteWriter& out, const Revocation& one) {
    out.u8(one.kind == Revocation::Kind::owner ? 1 : 0);
    if (one.kind != Revocation::Kind::owner) return one.encode(out);
    for (BytesView id : {one.node.view(), one.stream.view(), one.signature.view()}) out.raw(id);
    out.u64(one.range.first);
    out.u64(one.range.last);
  }
  static Revocation read(ByteReader& in) {
    if (in.u8() == 0) return Revocation::decode(in);
    Revocation one{in.id<NodeId>(), in.id<StreamId>(), {}, in.id<Signature>()};
    one.range.first = in.u64();
    one.range.last = in.u64();
    return one;
  }

  // The state with these names: what came later is taken back, as far as the log has it.
  Result<Bytes> snapshot(const HaveSet* names) {
    HaveSet have = names != nullptr ? *names : have_;
    std::uint64_t fingerprint = fingerprint_;
    const HaveSet later = have.missing_from(have_);
    for (const auto& [stream, ranges] : later.streams()) {
      for (const SeqRange& range : ranges) {
        for (std::uint64_t seq = range.first; seq <= range.last; ++seq) {
          const auto at = log_.find({stream, seq});
          if (at == log_.end()) return Error{Errc::limit, "it cannot go back to that cut"};
          fingerprint -= at->second.header.fingerprint;
        }
      }
    }
    ByteWriter out;
    have.encode(out);
    out.u64(fingerprint);
    out.varint(revocations_.size());
    for (const Revocation& one : revocations_) write(out, one);
    out.raw(Bytes(snapshot_padding));
    ++snapshots_made;
    return out.take();
  }

  Result<void> install(BytesView snapshot) {
    ByteReader in(snapshot);
    Result<HaveSet> have = HaveSet::decode(in);
    const std::uint64_t fingerprint = in.u64();
    std::set<Revocation> revocations;
    for (std::uint64_t left = in.varint(); left > 0 && !in.failed(); --left) {
      revocations.insert(read(in));
    }
    if (!have || in.failed()) return Error{Errc::corrupt, "snapshot is damaged"};
    have_ = std::move(have).value();
    fingerprint_ = fingerprint;
    lacks_weights_ = false;
    revocations_ = revocations;
    const auto revoked = [&](const UpdateKey& key) {
      return std::any_of(revocations_.begin(), revocations_.end(), [&](const auto& one) { return one.covers(key); });
    };
    std::erase_if(log_, [&](const auto& entry) { return revoked(entry.first); });
    for (const auto& [key, update] : log_) {
      if (have_.insert(key)) fingerprint_ += update.header.fingerprint;
    }
    stale_ = true;
    return {};
  }

  StoredUpdate seal(const StreamId& stream, const NodeId& origin, std::uint64_t seq, Prng&) override {
    return make(stream, origin, seq, 200);
  }
  Bytes checkpoint(const NodeId&) const override { return {}; }
  Result<void> restore(BytesView) override { return Error{Errc::mismatch, "it takes up no checkpoint"}; }
  std::uint64_t fingerprint() const override { return fingerprint_; }

  // Makes an own update of `bytes` bytes and applies it.
  StoredUpdate make(const StreamId& stream, const NodeId& origin, std::uint64_t seq, std::size_t bytes) {
    StoredUpdate update = compose(stream, origin, seq, bytes);
    (void)accept(update).ok();
    return update;
  }
  // The same, not applied.
  StoredUpdate compose(const StreamId& stream, const NodeId& origin, std::uint64_t seq,
                       std::size_t bytes) const {
    Bytes payload(bytes);
    Prng prng = Prng::named(seq, stream.hex());
    for (std::size_t at = 0; at < bytes; at += 8) {
      const std::uint64_t word = prng.next();
      std::memcpy(payload.data() + at, &word, std::min<std::size_t>(8, bytes - at));
    }
    StoredUpdate update;
    update.header = {{stream, seq}, origin, sha256(payload), prng.next(), seq, 32};
    update.payload = std::make_shared<const Bytes>(std::move(payload));
    if (sign) sign(update.header);
    return update;
  }

  void trim_log() { log_.clear(); }
  void corrupt() {
    ++fingerprint_;
    damaged_ = stale_ = true;
  }

  std::function<void(UpdateHeader&)> sign;  // what make() makes
  std::size_t snapshot_padding = 1000;
  std::size_t snapshots_made = 0;

 private:
  BlobSnapshots snapshots_{[this](const HaveSet* names) { return snapshot(names); },
                           [this](BytesView bytes) { return install(bytes); },
                           [this]() -> const HaveSet& { return have_; }};
  HaveSet have_;
  std::uint64_t fingerprint_ = 0;
  bool lacks_weights_ = false;
  std::set<Revocation> revocations_;
  std::map<UpdateKey, StoredUpdate> log_;
  mutable ReplicaDigest digest_;
  bool damaged_ = false;
  mutable bool stale_ = true;
};

}  // namespace rumor::gossip::test
