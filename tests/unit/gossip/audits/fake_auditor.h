// FakeAuditor: an auditor whose findings the test decides. It notes what it is asked.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gossip/contract/audit_port.h"

namespace rumor::gossip::test {

class FakeAuditor final : public AuditPort {
 public:
  std::shared_ptr<const KeptState> state(const UpdateKey& update, const NodeId&) override {
    ++asked;
    const auto kept = states.find(update);
    return kept == states.end() ? nullptr : kept->second;
  }
  void state_arrived(const UpdateKey& update, Bytes state) override { arrived[update] = std::move(state); }
  void state_failed(const UpdateKey& update, const std::string&) override { failed.push_back(update); }
  void check(const Revocation& proof, const NodeId&) override { checks.push_back(proof); }
  void charged(const UpdateKey& update) override { charges.push_back(update); }

  std::map<UpdateKey, std::shared_ptr<const KeptState>> states;
  std::size_t asked = 0;
  std::map<UpdateKey, Bytes> arrived;
  std::vector<UpdateKey> failed, charges;
  std::vector<Revocation> checks;
};

}  // namespace rumor::gossip::test
