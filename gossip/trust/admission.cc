#include "gossip/trust/admission.h"

#include "runtime/base/bytes.h"
#include "runtime/base/ed25519.h"
#include "runtime/base/limits.h"
#include "runtime/base/text.h"

namespace rumor::gossip {

namespace {

ByteWriter begin(std::string_view domain, const RunId& run) {
  ByteWriter out;
  for (const char c : domain) out.u8(static_cast<std::uint8_t>(c));
  out.u8(0);
  out.raw(run.view());
  return out;
}

void write_optional(ByteWriter& out, const std::optional<NodeId>& node) {
  out.u8(node ? 1 : 0);
  if (node) out.raw(node->view());
}

// False: the flag is neither 0 nor 1.
bool read_optional(ByteReader& in, std::optional<NodeId>& node) {
  const std::uint8_t flag = in.u8();
  if (flag == 1) node = in.id<NodeId>();
  return flag <= 1;
}

std::string_view trimmed(std::string_view line) {
  line = line.substr(0, line.find('#'));
  const std::size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Error refused(const std::string& text) {
  return {Errc::mismatch, text};
}

// The reason not to take up a token now that fits otherwise; empty when there is none.
std::string spent(const Admit& admit, const JudgeView& view, const NodeId& node) {
  const Token& token = admit.token;
  const bool confirmed =
      admit.by && view.admitter_known &&
      view.keys.verify(*admit.by, admit_message(view.run, node, token.id), admit.by_signature);
  if (confirmed) return {};
  if (token.not_after != 0 && view.unix_now > token.not_after)
    return "its token has expired; ask the run's owner for a new one";
  if (token.uses_max != 0 && view.uses >= token.uses_max)
    return str("its token was good for ", token.uses_max,
               " and is used up; ask the run's owner for a new one");
  return {};
}

}  // namespace

// ---- texts ----

Result<NodeId> parse_node_id(std::string_view text) {
  NodeId node;
  const Error wrong{Errc::usage, str('"', std::string(text.substr(0, 80)),
                                     "\" is no peer's key: 64 hex digits, as `rumor key show` prints them")};
  if (text.size() != 2 * NodeId::size) return wrong;
  for (std::size_t i = 0; i < NodeId::size; ++i) {
    const int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return wrong;
    node.bytes[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  if (!key_is_sound(node))
    return Error{Errc::usage, str("key ", node.brief(), "... is of small order: nobody's")};
  return node;
}

Result<AdmissionRule> parse_allow_list(std::string_view text, const std::string& source) {
  AdmissionRule rule;
  rule.everyone = false;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty()) continue;
    const bool refuse = line.front() == '-';
    if (refuse) line = trimmed(line.substr(1));
    const Result<NodeId> node = parse_node_id(line);
    if (!node) return Error{Errc::usage, str(source, ": line ", number, ": ", node.error().text)};
    (refuse ? rule.refused : rule.allowed).insert(*node);
    if (rule.allowed.size() + rule.refused.size() > limits::allowed_keys_max)
      return Error{Errc::limit, str(source, ": more than ", limits::allowed_keys_max, " keys")};
  }
  return rule;
}

// ---- bytes ----

void Token::encode(ByteWriter& out) const {
  out.raw(run.view());
  out.raw(id.view());
  out.u8(static_cast<std::uint8_t>(role));
  out.u32(uses_max);
  out.u64(static_cast<std::uint64_t>(not_after));
  write_optional(out, node);
  out.raw(owner.view());
}

Token Token::decode(ByteReader& in) {
  Token token;
  token.run = in.id<RunId>();
  token.id = in.id<NodeId>();
  const std::uint8_t role = in.u8();
  token.role = static_cast<Role>(role);
  token.uses_max = in.u32();
  token.not_after = static_cast<std::int64_t>(in.u64());
  const bool sane = read_optional(in, token.node) && (role == 1 || role == 2) && token.not_after >= 0;
  token.owner = in.id<Signature>();
  if (!sane) static_cast<void>(in.raw(SIZE_MAX));  // fails
  return token;
}

Bytes Admit::encode() const {
  ByteWriter out;
  token.encode(out);
  out.raw(use.view());
  write_optional(out, by);
  if (by) out.raw(by_signature.view());
  return out.take();
}

Result<Admit> Admit::decode(BytesView bytes) {
  ByteReader in(bytes);
  Admit admit;
  admit.token = Token::decode(in);
  admit.use = in.id<Signature>();
  const bool sane = read_optional(in, admit.by);
  if (admit.by) admit.by_signature = in.id<Signature>();
  if (!sane || !in.done()) return Error{Errc::corrupt, "a damaged token"};
  return admit;
}

Bytes token_message(const Token& token) {
  ByteWriter out = begin("rumor-token-v1", token.run);
  out.raw(token.id.view());
  out.u8(static_cast<std::uint8_t>(token.role));
  out.u32(token.uses_max);
  out.u64(static_cast<std::uint64_t>(token.not_after));
  write_optional(out, token.node);
  return out.take();
}

Bytes use_message(const RunId& run, const NodeId& joiner) {
  ByteWriter out = begin("rumor-join-v1", run);
  out.raw(joiner.view());
  return out.take();
}

Bytes admit_message(const RunId& run, const NodeId& joiner, const NodeId& token) {
  ByteWriter out = begin("rumor-admit-v1", run);
  out.raw(joiner.view());
  out.raw(token.view());
  return out.take();
}

// ---- judging ----

bool is_listed(const AdmissionRule& rule, const NodeId& node) {
  if (rule.refused.contains(node)) return false;
  return rule.everyone || rule.allowed.contains(node) || rule.owner == node;
}

bool admit_is_sound(const Keys& keys, const RunId& run, const std::optional<NodeId>& owner,
                    const NodeId& node, BytesView admit) {
  const Result<Admit> shown = Admit::decode(admit);
  if (!shown || !owner) return false;
  const Token& token = shown->token;
  return token.run == run && (!token.node || *token.node == node) &&
         keys.verify(*owner, token_message(token), token.owner) &&
         keys.verify(token.id, use_message(run, node), shown->use) &&
         (!shown->by || keys.verify(*shown->by, admit_message(run, node, token.id), shown->by_signature));
}

Result<Verdict> judge(const AdmissionRule& rule, const NodeId& node, BytesView admit, const JudgeView& view) {
  if (rule.refused.contains(node))
    return refused(str("key ", node.brief(), "... is refused here: it was taken off the list, or put out"));
  if (is_listed(rule, node)) return Verdict{};
  const std::string unknown = str("key ", node.hex(), " is not on its list");
  if (admit.empty())
    return refused(
        str(unknown, rule.owner ? ", and no token was shown; ask for either" : "; ask to be put there"));
  if (!rule.owner) return refused(str(unknown, ", and it takes no tokens, because the run has no owner"));
  const Result<Admit> shown = Admit::decode(admit);
  if (!shown) return refused("what was shown is no token");
  const Token& token = shown->token;
  if (token.run != view.run) return refused("the token is for another run; ask for one for this run");
  if (!view.keys.verify(*rule.owner, token_message(token), token.owner))
    return refused("the token is not signed by the run's owner");
  if (token.node && *token.node != node) return refused("the token is for another key");
  if (!view.keys.verify(token.id, use_message(view.run, node), shown->use))
    return refused("the token was shown by somebody who does not hold it");
  if (const std::string why = spent(*shown, view, node); !why.empty()) return refused(why);
  return Verdict{token.role, !shown->by.has_value()};
}

}  // namespace rumor::gossip
