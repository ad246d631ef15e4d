// SegmentAudit: makes one segment of another peer again, an update at a time (runtime/AUDIT.md, "Segments").
//
// It starts from newer weights and goes back to the view of the first step. All that a slice needs comes out of the
// log beforehand, so that the slice itself can run while the log's owner goes on.
//
// Threads: prepare() on the thread of the log, work() on any other, one after the other; all else in between.
// Memory: that of a training peer, the updates between the weights that it starts from and the first view, and data are
// shared.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "runtime/audit/stream_replay.h"

namespace rumor::audit {

// The updates first to last of a stream.
struct Segment {
  NodeId origin;
  StreamId stream;
  std::uint64_t first = 1, last = 1;
};

// All that audits of one run have in common but the weights.
struct AuditTask {
  RunConfig config;
  RunForm form;
  std::shared_ptr<const models::DataSet> data;
  Hash256 data_hash;  // models::training_data_hash(*data)
  Parallel* parallel = nullptr;  // as AuditedRun
};

class SegmentAudit {
 public:
  using Find = std::function<std::optional<gossip::StoredUpdate>(const UpdateKey&)>;

  // now: newest weights. state: as StreamReplay.
  SegmentAudit(AuditTask task, ReplicaState now, const Segment& segment, Bytes state);
  SegmentAudit(const SegmentAudit&) = delete;
  SegmentAudit& operator=(const SegmentAudit&) = delete;

  // Reads what the next slice needs. False: there is none, outcome() says why.
  bool prepare(const Find& find);
  // Makes the next update again, or compares the state at the end. Requires: prepare() was true.
  void work();

  struct Outcome {
    Finding finding;
    std::uint64_t seq = 0;       // the update that differs or cannot be told
    gossip::HaveSet view = {};   // of the last step of that update, where its tape can be read
    std::uint64_t agreed = 0;    // updates before it, or all
    bool gone = false;           // cannot tell, since the log lacks what its step needs
  };
  // Requires: prepare() was false.
  const Outcome& outcome() const { return outcome_; }
  const Segment& segment() const { return segment_; }

 private:
  void read_view();
  bool read_needed(const gossip::StoredUpdate& update, const Find& find);
  bool read_between(const gossip::HaveSet& from, const gossip::HaveSet& to, const Find& find);
  void read_own_in_flight(const std::vector<InFlightView::Waiting>& in_flight, const Find& find);
  void keep(const UpdateKey& key, const Find& find);
  void end(Finding finding, std::uint64_t seq);

  Segment segment_;
  UpdateLog window_{SIZE_MAX};  // what the next slice needs
  AuditedRun run_;
  TapeReader tape_;             // read ahead of the replay, for its views
  gossip::HaveSet at_;          // the view that the replay has come to
  std::uint64_t next_;          // the update of the next slice; last + 1: the state at the end
  std::optional<gossip::StoredUpdate> update_;  // of the next slice
  StreamReplay replay_;
  Outcome outcome_;
  bool over_ = false;
};

}  // namespace rumor::audit
