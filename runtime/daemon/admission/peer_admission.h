// PeerAdmission: the rule for links to this peer, and the token that it shows to others. It reads the files named in
// [network] of the run file, and the state directory.
//
//   DIR/admit   the token part of our record, with the confirmation of the member that admitted us
//
// Thread: one owner. look() costs two stat() calls when nothing has changed.
#pragma once

#include <string>
#include <vector>

#include "runtime/daemon/admission/admission_files.h"
#include "runtime/run/run_config.h"

namespace rumor::daemon {

class PeerAdmission {
 public:
  // Reads everything once. `directory` of the state, empty: none. Errors: Errc::usage, Errc::io,
  // Errc::not_found, with the file's name.
  static Result<PeerAdmission> open(const RunConfig& config, const std::string& directory);

  const gossip::AdmissionRule& rule() const { return rule_; }
  // To show: from an earlier life, or from the token. Empty: nothing.
  Bytes admit(const NodeId& self) const;
  // Returns why the token is for another run, and what to do. Empty: the token fits.
  std::string trouble(const RunId& run) const;
  bool observe() const { return token_ && token_->token.role == gossip::Role::observe; }

  // Changes of the files since the last check. The first check returns the revocations.
  struct News {
    bool rule = false;  // see rule()
    std::vector<gossip::Revocation> revocations;
    std::vector<std::string> complaints;  // problems of unusable files; their previous content stays valid
  };
  News look();

  // Writes DIR/admit if its content differs.
  Result<void> keep(const Bytes& admit);

 private:
  Result<void> read_rule(const std::string& text);

  std::string directory_;
  std::optional<NodeId> owner_;
  WatchedFile allow_, revoke_;
  gossip::AdmissionRule rule_;
  std::optional<JoinToken> token_;
  Bytes kept_;
};

}  // namespace rumor::daemon
