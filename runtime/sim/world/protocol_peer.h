// ProtocolPeer: the protocol and a PeerStore, without a trainer. The world decides when it makes an update.
//
// Thread: one owner.
#pragma once

#include "runtime/sim/world/sim_peer.h"
#include "runtime/sim/world/sim_store.h"

namespace rumor::sim {

class ProtocolPeer final : public SimPeer {
 public:
  ProtocolPeer(gossip::Options options, std::shared_ptr<PeerStore> store, Prng prng)
      : stream_(options.stream),
        self_(options.self),
        store_(std::move(store)),
        protocol_(std::move(options), *store_, std::move(prng)) {}

  void start(TimePoint now, gossip::Outbox& out) override { protocol_.start(now, out); }
  void on_link_up(const gossip::LinkUp& up, TimePoint now, gossip::Outbox& out) override {
    protocol_.on_link_up(up, now, out);
  }
  void on_frame(gossip::LinkId link, BytesView frame, TimePoint now, gossip::Outbox& out) override {
    protocol_.on_frame(link, frame, now, out);
  }
  void on_link_down(gossip::LinkId link, const std::string& reason, TimePoint now,
                    gossip::Outbox& out) override {
    protocol_.on_link_down(link, reason, now, out);
  }
  void on_dial_failed(const std::string& address, const std::string& reason, TimePoint now,
                      gossip::Outbox& out) override {
    protocol_.on_dial_failed(address, reason, now, out);
  }
  void on_backlog(gossip::LinkId link, bool full, TimePoint now, gossip::Outbox& out) override {
    protocol_.on_backlog(link, full, now, out);
  }
  void on_time(TimePoint now, gossip::Outbox& out) override { protocol_.on_time(now, out); }
  void leave(TimePoint now, gossip::Outbox& out) override { protocol_.leave(now, out); }
  void publish(std::uint64_t seq, Prng& content, TimePoint now, gossip::Outbox& out) override {
    sealed_.push_back(store_->seal(stream_, self_, seq, content));
    protocol_.publish(sealed_.back(), now, out);
  }
  void set_finished(bool finished, TimePoint now, gossip::Outbox& out) override {
    protocol_.set_finished(finished, now, out);
  }
  TimePoint next_deadline() const override { return protocol_.next_deadline(); }

  const gossip::Protocol& protocol() const override { return protocol_; }
  gossip::Protocol& protocol() { return protocol_; }
  const gossip::HaveSet& have() const override { return store_->have(); }
  std::uint64_t fingerprint() const override { return store_->fingerprint(); }
  const Replica* replica() const override { return store_->replica(); }
  bool log_in_bounds() const override { return store_->log_in_bounds(); }
  std::optional<Bytes> checkpoint() const override { return store_->checkpoint(self_); }
  std::vector<gossip::UpdateHeader> take_applied() override { return store_->take_applied(); }
  bool take_replaced() override { return store_->take_replaced(); }

 private:
  StreamId stream_;
  NodeId self_;
  std::shared_ptr<PeerStore> store_;  // of this peer alone, or of a test that looks into it
  gossip::Protocol protocol_;
};

}  // namespace rumor::sim
