// TagKeys: signatures for simulations. A tag over the signer's public name, so anybody can make one: it shows
// every mistake about what is signed and when it is checked, at a hundredth of the cost, and protects nobody.
//
// Thread: immutable.
#pragma once

#include "gossip/trust/signing.h"
#include "runtime/base/bytes.h"
#include "runtime/base/prng.h"

namespace rumor::sim {

class TagKeys final : public gossip::Keys {
 public:
  explicit TagKeys(const NodeId& self) : self_(self) {}

  Signature sign(BytesView message) const override { return tag(self_, message); }
  bool verify(const NodeId& node, BytesView message, const Signature& signature) const override {
    return tag(node, message) == signature;
  }

 private:
  static Signature tag(const NodeId& node, BytesView message) {
    std::uint64_t h = absorb(0x7461'6773, node.view());
    h = absorb(h ^ message.size(), message);
    ByteWriter out;
    while (out.size() < Signature::size) out.u64(h = mix64(h));
    return Signature::from(out.bytes());
  }
  static std::uint64_t absorb(std::uint64_t h, BytesView bytes) {
    ByteReader in(bytes);
    while (in.remaining() >= 8) h = mix64(h ^ in.u64());
    while (in.remaining() > 0) h = mix64(h ^ in.u8());
    return h;
  }

  NodeId self_;
};

}  // namespace rumor::sim
