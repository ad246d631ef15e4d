// Admission: whether a node may take part, judged by our own rule and the token that the node shows (PROTOCOL.md 6.9).
//
// Each peer has a rule of its own: a list of keys, and the key of the run's owner, which is in the run file. A token is
// the owner's signed word that any holder of the token's own key may join. The joiner signs its NodeId with that key,
// and TLS proves the NodeId on every link. Therefore a shown token is worth nothing to any other node, on this link or
// another; the secret never travels; and any node can check all of it offline.
//
// Thread: plain values and pure functions. Nothing here reads a clock: the time is handed in.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "gossip/trust/signing.h"
#include "runtime/base/result.h"

namespace rumor::gossip {

struct AdmissionRule {
  bool everyone = true;  // every node that can reach us: for loopback
  std::set<NodeId> allowed;
  std::set<NodeId> refused;     // even with a token; their new streams are not taken either
  std::optional<NodeId> owner;  // of the run: is admitted, and may sign tokens
};

// Reads a list of keys as people keep it: one of 64 hex digits a line, "-KEY" to refuse one, a remark after "#". Fills
// `allowed` and `refused`; everyone is false. Errors: Errc::usage, naming the line; Errc::limit.
Result<AdmissionRule> parse_allow_list(std::string_view text, const std::string& source);
// 64 hex digits. Errors: Errc::usage, also for a key that is not sound.
Result<NodeId> parse_node_id(std::string_view text);

enum class Role : std::uint8_t { train = 1, observe = 2 };

// The part of a token that the owner signs.
struct Token {
  RunId run;
  NodeId id;  // public half of the token's own key
  Role role = Role::train;
  std::uint32_t uses_max = 0;  // 0: no limit. Each node counts what it knows: members may pass it by a few
  std::int64_t not_after = 0;  // seconds since 1970; 0: never ends. For joining, not for staying
  std::optional<NodeId> node = {};  // the only node that may use it
  Signature owner{};

  void encode(ByteWriter& out) const;
  // Errors show as in.failed().
  static Token decode(ByteReader& in);
};

// The token that a joiner shows. It travels in the record of every member that joined by one.
struct Admit {
  Token token;
  Signature use{};           // by the token's key, for this node
  std::optional<NodeId> by;  // the node that admitted it, while the token was good
  Signature by_signature{};

  Bytes encode() const;
  // Errors: Errc::corrupt.
  static Result<Admit> decode(BytesView bytes);
};

Bytes token_message(const Token& token);
Bytes use_message(const RunId& run, const NodeId& joiner);
Bytes admit_message(const RunId& run, const NodeId& joiner, const NodeId& token);

// The facts that judge() needs beside the rule.
struct JudgeView {
  const Keys& keys;
  RunId run;
  std::int64_t unix_now = 0;
  std::uint64_t uses = 0;       // known members, but for this node, that joined by the token
  bool admitter_known = false;  // `by` is a member we have admitted
};

struct Verdict {
  Role role = Role::train;
  bool countersign = false;  // it came in by a token that nobody has confirmed yet: we should
};

// Whether the node of a record may take part. Error: Errc::mismatch, one line for its owner: cause and fix.
Result<Verdict> judge(const AdmissionRule& rule, const NodeId& node, BytesView admit, const JudgeView& view);

// Whether every signature in the token of a record is good. Whether the token may still be used is another question.
// `owner` is the run's; without one no token is sound.
bool admit_is_sound(const Keys& keys, const RunId& run, const std::optional<NodeId>& owner,
                    const NodeId& node, BytesView admit);

// Whether the rule admits the node without a token.
bool is_listed(const AdmissionRule& rule, const NodeId& node);

}  // namespace rumor::gossip
