// Driver: a whole Protocol with two admitted links that then send anything.
//
// Input: a list of steps. Low two bits of the first byte: 0, 1: a frame on link 0 or 1 (u16 length, bytes);
// 2: time passes, 20 ms times the other bits; 3: by the other bits: publish, backlog on or off, finish,
// forget the log, ask for a state, or answer what the auditor was asked. The protocol must keep its
// invariants, never close without a reason, never exceed a frame, and keep its output in proportion to what
// it was asked.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>

#include "gossip/protocol.h"
#include "gossip/wire/wire.h"
#include "runtime/base/bytes.h"
#include "runtime/base/limits.h"
#include "runtime/sim/world/tag_keys.h"
#include "tests/unit/gossip/audits/fake_auditor.h"
#include "tests/unit/gossip/copies/fake_copies.h"

namespace rumor::gossip::test {

inline constexpr std::size_t steps_max = 400;

template <class AnId>
AnId id_of(std::uint8_t number) {
  AnId id;
  id.bytes.fill(number);
  return id;
}

// broadcast: every update goes to every peer. copies: peers average. stage: the run is a stage, and link 0 is of
// another.
enum class DriverKind { broadcast, copies, stage };

// A pipeline without one: links come and go in pairs, and frames only come over these.
struct CheckedStageLinks final : StageLinks {
  std::set<LinkId> links;
  void linked(LinkId link) override {
    if (!links.insert(link).second) std::abort();
  }
  void unlinked(LinkId link) override {
    if (links.erase(link) == 0) std::abort();
  }
  void frame(LinkId link, const Frame&) override {
    if (!links.contains(link)) std::abort();
  }
};

class Driver {
 public:
  explicit Driver(DriverKind kind) : kind_(kind), copies_(store_), protocol_(options(), store_, Prng(1)) {
    store_.sign = [this](UpdateHeader& header) {
      header.signature = keys_of(self_)->sign(update_message(run_, header));
    };
    act([&] { protocol_.start(now_, out_); });
    for (int i = 0; i < 4; ++i) publish();
    greet(0);
    greet(1);
  }

  void run(ByteReader& in) {
    for (std::size_t step = 0; step < steps_max && in.remaining() > 0; ++step) {
      const std::uint8_t op = in.u8();
      if ((op & 3) < 2) {
        const BytesView frame = in.raw(std::min<std::size_t>(in.u16(), in.remaining()));
        act([&] { protocol_.on_frame(links_[op & 1], frame, now_, out_); });
      } else if ((op & 3) == 2) {
        now_ += 20ms * (op >> 2);
        act([&] { protocol_.on_time(now_, out_); });
      } else {
        other(op >> 2);
      }
    }
  }

 private:
  Options options() {
    Options options{self_, stream_, run_, "fuzz", {"a:1"}, {"b:2"}, {}, CodingRule::automatic, keys_of(self_),
                    {true, {}, {}, id_of<NodeId>(2)}};
    if (kind_ == DriverKind::copies) options.copies = &copies_;
    else options.audits = &auditor_;
    if (kind_ == DriverKind::stage) {
      options.stage = Stage{id_of<PipelineId>(3), 1, 2, 0};
      options.stage_links = &stage_links_;
    }
    return options;
  }

  void greet(std::size_t which) {
    const auto node = id_of<NodeId>(static_cast<std::uint8_t>(10 + which));
    links_[which] = LinkId{++links_made_};
    act([&] { protocol_.on_link_up({links_[which], node, which == 0, "b:2"}, now_, out_); });
    Hello hello;
    hello.run = run_;
    hello.stream = stream_of(node, 1);
    hello.self = {node, 1, {"c:3"}};
    RunId members_of = run_;
    if (kind_ == DriverKind::stage) {
      hello.pipeline = id_of<PipelineId>(3);
      members_of = RunId::from(hello.pipeline.view());
      hello.self.stage = which == 0 ? 2 : 1;
      if (which == 0) hello.run = id_of<RunId>(4);
    }
    hello.self.signature = keys_of(node)->sign(record_message(members_of, hello.self));
    act([&] { protocol_.on_frame(links_[which], encode(hello), now_, out_); });
  }

  void publish() {
    const StoredUpdate update = store_.make(stream_, self_, ++seq_, 40);
    act([&] { protocol_.publish(update, now_, out_); });
  }

  // Node 11 is asked for the state of length 100,000, all zero, that we would give for our first update.
  void want_state() {
    const UpdateKey update{stream_of(id_of<NodeId>(11), 1), 1};
    const auto state = keep_state(Bytes(100'000));
    auditor_.states[{stream_, 1}] = state;
    act([&] { protocol_.want_state({update, state->root, 100'000, {id_of<NodeId>(11)}}, now_, out_); });
  }

  void answer(Checked verdict) {
    for (const Revocation& proof : std::exchange(auditor_.checks, {}))
      act([&] { protocol_.checked(proof, verdict, now_, out_); });
  }

  void other(int what) {
    switch (what) {
      case 60: return want_state();
      case 61: return answer(Checked::differs);
      case 62: return answer(Checked::agrees);
      case 63: return answer(Checked::cannot_tell);
      default: break;
    }
    switch (what % 6) {
      case 0: return publish();
      case 1: return act([&] { protocol_.on_backlog(links_[0], true, now_, out_); });
      case 2: return act([&] { protocol_.on_backlog(links_[0], false, now_, out_); });
      case 3: return act([&] { protocol_.set_finished(what % 12 < 6, now_, out_); });
      case 4: return store_.trim_log();
      default: return greet(0);  // one more link of the same node
    }
  }

  template <class Call>
  void act(Call call) {
    call();
    protocol_.check_invariants();
    std::size_t bytes = 0;
    std::vector<LinkId> closed;
    for (Effect& effect : out_) {
      if (auto* send = std::get_if<Send>(&effect)) {
        const Bytes frame = std::move(send->frame).joined();
        if (frame.empty() || frame.size() > limits::frame_bytes_max) std::abort();
        if (!decode(frame).ok()) std::abort();
        bytes += frame.size();
      }
      if (const auto* close = std::get_if<Close>(&effect)) {
        if (close->reason.empty()) std::abort();
        closed.push_back(close->link);
      }
    }
    if (bytes > 8 * limits::link_backlog_high) std::abort();
    out_.clear();
    for (const LinkId link : closed) {
      protocol_.on_link_down(link, "closed", now_, out_);
      protocol_.check_invariants();
    }
    out_.clear();
    store_.have().check_invariants();
    static_cast<void>(protocol_.converged());
    static_cast<void>(protocol_.waiting_for());
  }

  static std::shared_ptr<const Keys> keys_of(const NodeId& node) {
    return std::make_shared<sim::TagKeys>(node);
  }

  const NodeId self_ = id_of<NodeId>(1);
  const StreamId stream_ = stream_of(self_, 1);
  const RunId run_ = id_of<RunId>(1);
  const DriverKind kind_;
  FakeStore store_;
  FakeCopies copies_;
  FakeAuditor auditor_;
  CheckedStageLinks stage_links_;
  Protocol protocol_;
  Outbox out_;
  TimePoint now_{};
  std::uint64_t seq_ = 0, links_made_ = 0;
  LinkId links_[2]{};
};

}  // namespace rumor::gossip::test
