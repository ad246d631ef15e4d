#include "runtime/daemon/admission/peer_admission.h"

#include "runtime/base/limits.h"
#include "runtime/base/text.h"
#include "runtime/daemon/state/storage.h"

namespace rumor::daemon {

Result<void> PeerAdmission::read_rule(const std::string& text) {
  auto rule = gossip::parse_allow_list(text, allow_.path());
  if (!rule) return rule.error();
  rule_ = std::move(rule).value();
  rule_.owner = owner_;
  return {};
}

Result<PeerAdmission> PeerAdmission::open(const RunConfig& config, const std::string& directory) {
  PeerAdmission admission;
  admission.directory_ = directory;
  if (!config.owner.empty()) {
    const auto owner = gossip::parse_node_id(config.owner);
    if (!owner) return owner.error();
    admission.owner_ = *owner;
  }
  admission.rule_.owner = admission.owner_;
  admission.rule_.everyone = config.allow.empty() && config.owner.empty();
  admission.allow_ = WatchedFile(config.allow);
  admission.revoke_ = WatchedFile(config.revoke);
  if (const auto text = admission.allow_.changed()) {
    if (!text->ok())
      return Error{text->error().code,
                   str("network.allow: ", text->error().text, "; make it with `rumor key allow FILE KEY`")};
    if (auto read = admission.read_rule(**text); !read) return read.error();
  }
  if (!config.token.empty()) {
    const auto bytes = read_file(config.token, limits::token_text_max);
    if (!bytes) return Error{bytes.error().code, str("network.token: ", bytes.error().text)};
    auto token = parse_token({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, config.token);
    if (!token) return token.error();
    admission.token_ = std::move(token).value();
  }
  if (!directory.empty()) {
    // A convenience: without it the token has to do.
    auto kept = read_file(directory + "/admit", limits::admit_bytes_max);
    if (kept.ok() && gossip::Admit::decode(*kept).ok()) admission.kept_ = std::move(kept).value();
  }
  return admission;
}

Bytes PeerAdmission::admit(const NodeId& self) const {
  const auto kept = kept_.empty() ? Result<gossip::Admit>(Error{}) : gossip::Admit::decode(kept_);
  // A newer token than the one we came in by is meant to be used.
  if (kept.ok() && (!token_ || kept->token.id == token_->token.id)) return kept_;
  if (!token_) return {};
  return use_token(*token_, token_->token.run, self).encode();
}

std::string PeerAdmission::trouble(const RunId& run) const {
  if (!token_ || token_->token.run == run) return {};
  return str("the join token is for run ", token_->token.run.brief(), ", this is run ", run.brief(),
             ": use the run file that the owner made it for, or ask for another token");
}

PeerAdmission::News PeerAdmission::look() {
  News news;
  if (const auto text = allow_.changed()) {
    const Result<void> read = text->ok() ? read_rule(**text) : Result<void>(text->error());
    news.rule = read.ok();
    if (!read) news.complaints.push_back(read.error().text + "; the list stands as it was");
  }
  if (const auto text = revoke_.changed()) {
    auto read = text->ok() ? parse_revocations(**text, revoke_.path())
                           : Result<std::vector<gossip::Revocation>>(text->error());
    if (read.ok())
      news.revocations = std::move(read).value();
    else
      news.complaints.push_back(read.error().text);
  }
  return news;
}

Result<void> PeerAdmission::keep(const Bytes& admit) {
  if (directory_.empty() || admit.empty() || admit == kept_) return {};
  kept_ = admit;
  return write_atomically(directory_ + "/admit", admit);
}

}  // namespace rumor::daemon
