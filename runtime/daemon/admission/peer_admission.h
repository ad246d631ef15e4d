// PeerAdmission: who may link to this peer and what it shows to others, from the files that the run file's
// [network] names and the state directory.
//
//   DIR/admit   what our record shows of a token, with the confirmation of the member that admitted us
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
  // The token's run is not this one: why, and what to do. Empty: fine.
  std::string trouble(const RunId& run) const;
  bool observe() const { return token_ && token_->token.role == gossip::Role::observe; }

  // Changes of the files since the last check. The first check returns the revocations.
  struct News {
    bool rule = false;  // see rule()
    std::vector<gossip::Revocation> revocations;
    std::vector<std::string> complaints;  // a file is of no use as it is now; what it said before stands
  };
  News look();

  // Writes DIR/admit when it is not what stands there.
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
