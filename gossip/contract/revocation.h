// Revocation: updates of one node that are taken back, from every replica (PROTOCOL.md 6.10).
//
// A part of the replica: equal sets of updates and of revocations give equal weights.
//
// Thread: plain values. Memory: kept_max keys at most.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gossip/contract/seq_ranges.h"
#include "runtime/base/bytes.h"
#include "runtime/base/types.h"

namespace rumor::gossip {

struct Revocation {
  enum class Kind : std::uint8_t {
    owner,      // signed by the owner of the run: one stream within a range, or all of the node's
    withdrawn,  // signed by the node: its own stream, from range.first on
    proven,     // signed by nobody: everybody can see that `false_update` is false
  };
  static constexpr std::size_t kept_max = 256;

  NodeId node;
  StreamId stream;  // zero: every stream of the node, those to come too
  SeqRange range{1, seq_max};
  Signature signature{};  // zero: proven
  Kind kind = Kind::owner;
  UpdateKey false_update = {};       // proven
  std::vector<UpdateKey> kept = {};  // proven: up to which number a stream of the node stays; by stream, ascending
  auto operator<=>(const Revocation&) const = default;

  static Revocation withdrawal(const NodeId& node, const UpdateKey& first);
  // `kept` without the stream of the false update. Requires: it fits in, ascending.
  static Revocation proof(const NodeId& node, const UpdateKey& false_update, std::vector<UpdateKey> kept);

  // The numbers of a stream that it covers. Nothing: none.
  std::optional<SeqRange> part_of(const StreamId& other) const;
  bool covers(const UpdateKey& key) const;
  // Whether it takes back all that `other` does, of every stream that the node has or will have.
  bool includes(const Revocation& other) const;
  // Why no honest node would send it, or nothing. Signatures are judged elsewhere (gossip/trust/signing.h).
  std::optional<std::string_view> invalid() const;
  // "updates 3 to 7 of stream ... of ...", for people.
  std::string text() const;

  // The body of TAKEN_BACK. Requires: not the owner's.
  void encode(ByteWriter& out) const;
  // Fails the reader, or returns what satisfies invalid() == nullopt or not.
  static Revocation decode(ByteReader& in);
};

// Whether it is a proof that one of `known` makes needless, so that it is no element of the set (PROTOCOL.md 6.10.2).
bool is_needless(const Revocation& revocation, const std::set<Revocation>& known);
// Adds it, and removes what it makes needless. Requires: it is not needless, and not in `known`.
void add_revocation(const Revocation& revocation, std::set<Revocation>& known);

}  // namespace rumor::gossip
