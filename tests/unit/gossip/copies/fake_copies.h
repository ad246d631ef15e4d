// FakeCopies: the public copies of a FakeStore, its own, and of neighbours', each a FakeStore of its own.
#pragma once

#include "gossip/contract/copy_port.h"
#include "tests/unit/gossip/fake_store.h"

namespace rumor::gossip::test {

class FakeCopies final : public CopyPort {
 public:
  explicit FakeCopies(FakeStore& own) : own_(own) {}

  std::shared_ptr<const Bytes> own_copy() const override {
    ++given;
    return std::make_shared<const Bytes>(own_.snapshot(nullptr).value());
  }
  std::size_t copy_bytes_max() const override { return own_.snapshot_padding + 10'000; }

  std::optional<std::uint64_t> held(const NodeId& node, const StreamId& stream) const override {
    const auto at = neighbours.find(node);
    if (at == neighbours.end() || !at->second.copy->have().streams().contains(stream)) return std::nullopt;
    return at->second.copy->have().head(stream);
  }
  void hold_initial(const NodeId& node) override { neighbours[node].copy = std::make_unique<FakeStore>(); }
  Result<void> take_copy(const NodeId& node, BytesView copy) override {
    auto fresh = std::make_unique<FakeStore>();
    if (auto installed = fresh->install(copy); !installed) return installed;
    neighbours[node].copy = std::move(fresh);
    ++taken;
    return {};
  }
  Result<void> take_update(const StoredUpdate& update) override {
    const auto accepted = neighbours.at(update.header.origin).copy->accept(update);
    if (!accepted) return accepted.error();
    return {};
  }
  void begin_with(const NodeId& node) override {
    RUMOR_CHECK(own_.install(neighbours.at(node).copy->snapshot(nullptr).value()).ok());
    began_with = node;
  }
  std::optional<ReplicaDigest> digest_of(const NodeId& node) const override {
    const auto at = neighbours.find(node);
    if (at == neighbours.end()) return std::nullopt;
    return at->second.copy->digest();
  }
  void set_linked(const NodeId& node, bool linked, TimePoint) override { neighbours[node].linked = linked; }

  struct Neighbour {
    std::unique_ptr<FakeStore> copy = std::make_unique<FakeStore>();
    bool linked = false;
  };
  std::map<NodeId, Neighbour> neighbours;
  std::optional<NodeId> began_with;
  mutable std::size_t given = 0;  // copies made of one's own
  std::size_t taken = 0;

 private:
  FakeStore& own_;
};

}  // namespace rumor::gossip::test
