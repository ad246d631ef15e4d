// Admission: who may take part, judged from a rule of ours and from what a node shows (PROTOCOL.md 6.9).
//
// A rule is each peer's own: a list of keys, and the key of the run's owner, which every peer has from the
// run file. A token is the owner's signed word that whoever holds the token's own key may join. The joiner
// signs its NodeId with that key; TLS proves the NodeId on every link. So what it shows is worth nothing to
// anybody else, on this link or another, the secret never travels, and any node can check all of it offline.
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
  bool everyone = true;  // whoever can reach us: for loopback
  std::set<NodeId> allowed;
  std::set<NodeId> refused;     // even with a token; their new streams are not taken either
  std::optional<NodeId> owner;  // of the run: is admitted, and may sign tokens
};

// A list of keys as people keep it: one of 64 hex digits a line, "-KEY" to refuse one, "#" and what follows
// is a remark. Fills `allowed` and `refused`; everyone is false. Errors: Errc::usage, naming the line;
// Errc::limit.
Result<AdmissionRule> parse_allow_list(std::string_view text, const std::string& source);
// 64 hex digits. Errors: Errc::usage, also for a key that is not sound.
Result<NodeId> parse_node_id(std::string_view text);

enum class Role : std::uint8_t { train = 1, observe = 2 };

// What the owner signs.
struct Token {
  RunId run;
  NodeId id;  // public half of the token's own key
  Role role = Role::train;
  std::uint32_t uses_max = 0;  // 0: no limit. Each node counts what it knows: members may pass it by a few
  std::int64_t not_after = 0;  // seconds since 1970; 0: never ends. For joining, not for staying
  std::optional<NodeId> node = {};  // the only one who may use it
  Signature owner{};

  void encode(ByteWriter& out) const;
  // Errors show as in.failed().
  static Token decode(ByteReader& in);
};

// What a joiner shows, and later every member that joined by a token: travels in its record.
struct Admit {
  Token token;
  Signature use{};           // by the token's key, for this node
  std::optional<NodeId> by;  // who admitted it, while the token was good
  Signature by_signature{};

  Bytes encode() const;
  // Errors: Errc::corrupt.
  static Result<Admit> decode(BytesView bytes);
};

Bytes token_message(const Token& token);
Bytes use_message(const RunId& run, const NodeId& joiner);
Bytes admit_message(const RunId& run, const NodeId& joiner, const NodeId& token);

// What a judge knows beside the rule.
struct JudgeView {
  const Keys& keys;
  RunId run;
  std::int64_t unix_now = 0;
  std::uint64_t uses = 0;       // other members we know of who joined by the token at hand
  bool admitter_known = false;  // `by` is a member we have admitted
};

struct Verdict {
  Role role = Role::train;
  bool countersign = false;  // it came in by a token that nobody has confirmed yet: we should
};

// Whether the node of a record may take part. Error: Errc::mismatch, one line for its owner: cause and fix.
Result<Verdict> judge(const AdmissionRule& rule, const NodeId& node, BytesView admit, const JudgeView& view);

// Whether what a record shows of a token is what it seems: every signature in it is good. When it may still
// be used is another question. `owner` of the run; without one no token is sound.
bool admit_is_sound(const Keys& keys, const RunId& run, const std::optional<NodeId>& owner,
                    const NodeId& node, BytesView admit);

// Known without its saying anything.
bool is_listed(const AdmissionRule& rule, const NodeId& node);

}  // namespace rumor::gossip
