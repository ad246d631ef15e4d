#include "runtime/daemon/admission/admission_files.h"

#include <sys/stat.h>

#include <chrono>

#include "runtime/base/bytes.h"
#include "runtime/base/limits.h"
#include "runtime/base/text.h"
#include "runtime/daemon/state/storage.h"

namespace rumor::daemon {

namespace {

constexpr std::string_view token_word = "rumor-token-1 ", revocation_word = "rumor-revocation-1 ";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// The bytes behind `word`; nothing when it is not there or they are no lower-case hex.
std::optional<Bytes> bytes_behind(std::string_view word, std::string_view text) {
  text = trimmed(text);
  if (text.substr(0, word.size()) != word || text.size() > limits::token_text_max) return std::nullopt;
  text = trimmed(text.substr(word.size()));
  if (text.size() % 2 != 0) return std::nullopt;
  Bytes bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = hex_digit(text[i]), low = hex_digit(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes.push_back(static_cast<std::uint8_t>(high << 4 | low));
  }
  return bytes;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// The key that a line of an allowlist names.
std::optional<NodeId> key_of(std::string_view line) {
  line = trimmed(line.substr(0, line.find('#')));
  if (!line.empty() && line.front() == '-') line = trimmed(line.substr(1));
  const Result<NodeId> key = gossip::parse_node_id(line);
  return key.ok() ? std::optional(*key) : std::nullopt;
}

}  // namespace

// ---- tokens ----

JoinToken make_token(const SigningKey& owner, gossip::Token terms, const SigningKey::Seed& secret) {
  terms.id = SigningKey(secret).id();
  terms.owner = owner.sign(gossip::token_message(terms));
  return {terms, secret};
}

std::string token_text(const JoinToken& token) {
  ByteWriter out;
  token.token.encode(out);
  out.raw(token.secret);
  return str(token_word, to_hex(out.bytes()), '\n');
}

Result<JoinToken> parse_token(std::string_view text, const std::string& source) {
  const auto bytes = bytes_behind(token_word, text);
  ByteReader in(bytes ? BytesView(*bytes) : BytesView());
  JoinToken token;
  token.token = gossip::Token::decode(in);
  const BytesView secret = in.raw(token.secret.size());
  if (!in.done())
    return Error{Errc::usage,
                 str(source, " holds no join token, or a damaged one; ask the run's owner for a new one")};
  std::copy(secret.begin(), secret.end(), token.secret.begin());
  if (SigningKey(token.secret).id() != token.token.id)
    return Error{Errc::usage,
                 str(source, ": the token and its secret do not belong together; it is damaged")};
  return token;
}

gossip::Admit use_token(const JoinToken& token, const RunId& run, const NodeId& joiner) {
  return {token.token, SigningKey(token.secret).sign(gossip::use_message(run, joiner)), {}, {}};
}

// ---- revocations ----

gossip::Revocation make_revocation(const SigningKey& owner, const RunId& run, gossip::Revocation what) {
  what.signature = owner.sign(gossip::revoke_message(run, what));
  return what;
}

std::string revocation_text(const gossip::Revocation& revocation) {
  ByteWriter out;
  out.raw(revocation.node.view());
  out.raw(revocation.stream.view());
  out.u64(revocation.range.first);
  out.u64(revocation.range.last);
  out.raw(revocation.signature.view());
  return str(revocation_word, to_hex(out.bytes()), '\n');
}

Result<std::vector<gossip::Revocation>> parse_revocations(std::string_view text, const std::string& source) {
  std::vector<gossip::Revocation> revocations;
  std::size_t number = 0;
  for (const std::string& line : lines_of(text)) {
    ++number;
    const std::string_view words = trimmed(std::string_view(line).substr(0, line.find('#')));
    if (words.empty()) continue;
    const auto bytes = bytes_behind(revocation_word, words);
    ByteReader in(bytes ? BytesView(*bytes) : BytesView());
    gossip::Revocation one{in.id<NodeId>(), in.id<StreamId>()};
    one.range.first = in.u64();
    one.range.last = in.u64();
    one.signature = in.id<Signature>();
    if (!in.done() || !one.range.valid() || one.node.is_zero())
      return Error{Errc::usage,
                   str(source, ": line ", number, " is no revocation as `rumor key revoke` writes it")};
    revocations.push_back(one);
  }
  return revocations;
}

// ---- the allowlist ----

std::string with_key(const std::string& text, const NodeId& key, bool allowed, const std::string& remark) {
  const std::string name = (allowed ? "" : "-") + key.hex();
  std::string out;
  bool found = false;
  for (const std::string& line : lines_of(text)) {
    if (key_of(line) != key) {
      out += line + "\n";
      continue;
    }
    if (found) continue;
    found = true;
    const std::size_t hash = line.find('#');
    out += name + (hash == std::string::npos ? "" : "  " + line.substr(hash)) + "\n";
  }
  if (!found) out += name + (remark.empty() ? "" : "  # " + remark) + "\n";
  return out;
}

std::int64_t unix_now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(since).count();
}

std::optional<Result<std::string>> WatchedFile::changed() {
  if (!named()) return std::nullopt;
  Version version;
  struct stat status {};
  if (::stat(path_.c_str(), &status) == 0)
    version = {status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_size, status.st_ino};
  if (seen_ == version) return std::nullopt;
  seen_ = version;
  const Result<Bytes> bytes = read_file(path_, limits::allow_file_bytes_max);
  if (!bytes) return Result<std::string>(bytes.error());
  return Result<std::string>(std::string(bytes->begin(), bytes->end()));
}

}  // namespace rumor::daemon
