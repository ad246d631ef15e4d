// Reads, makes and changes the files of admission: allowlist, join token, revocations. gossip/trust/admission.h defines
// their meaning.
//
//   allowlist     one key a line, "-KEY" refuses one, "#" begins a remark
//   token         "rumor-token-1 HEX": the owner's signed token, then the secret of the token's own key. Every reader
//                 of the file can join: mode 0600
//   revocations   "rumor-revocation-1 HEX" a line
//
// Thread: plain functions; AdmissionWatch has one owner.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gossip/trust/admission.h"
#include "runtime/base/ed25519.h"

namespace rumor::daemon {

// ---- tokens ----

struct JoinToken {
  gossip::Token token;
  SigningKey::Seed secret{};
};

// Signs a token. Its own key is derived from `secret` (random bytes). `terms`: run, role, uses, end and node.
JoinToken make_token(const SigningKey& owner, gossip::Token terms, const SigningKey::Seed& secret);
std::string token_text(const JoinToken& token);
// Errors: Errc::usage (no token, damaged), naming `source`.
Result<JoinToken> parse_token(std::string_view text, const std::string& source);
// The proof that `joiner` shows for the token.
gossip::Admit use_token(const JoinToken& token, const RunId& run, const NodeId& joiner);

// ---- revocations ----

gossip::Revocation make_revocation(const SigningKey& owner, const RunId& run, gossip::Revocation what);
std::string revocation_text(const gossip::Revocation& revocation);
// All lines of a file. Errors: Errc::usage, naming the line.
Result<std::vector<gossip::Revocation>> parse_revocations(std::string_view text, const std::string& source);

// ---- the allowlist ----

// The list with `key` allowed, or refused; its line is changed where it has one, and all else stays as it
// was. `remark` goes behind a new line. Requires: `text` parses.
std::string with_key(const std::string& text, const NodeId& key, bool allowed, const std::string& remark);

// Seconds since 1970: for the ends of tokens.
std::int64_t unix_now();

// A file that somebody may change while we run.
class WatchedFile {
 public:
  WatchedFile() = default;
  explicit WatchedFile(std::string path) : path_(std::move(path)) {}

  bool named() const { return !path_.empty(); }
  const std::string& path() const { return path_; }
  // Its text when it is new or has changed since the last call, else nothing. Errors: Errc::io,
  // Errc::not_found, Errc::limit, once for each change.
  std::optional<Result<std::string>> changed();

 private:
  struct Version {
    std::int64_t seconds = 0, nanoseconds = 0, bytes = -1;
    std::uint64_t inode = 0;
    bool operator==(const Version&) const = default;
  };
  std::string path_;
  std::optional<Version> seen_;
};

}  // namespace rumor::daemon
