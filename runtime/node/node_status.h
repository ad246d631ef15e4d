// NodeStatus: the figures of one peer at one moment. status_figures() describes them for /status, /metrics, `rumor
// status`, the page and the rest (runtime/base/figures.h).
//
// Thread: plain values; safe to hand to another thread.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "gossip/protocol.h"
#include "runtime/base/figures.h"
#include "runtime/contributions/contributions.h"
#include "runtime/exchange/staleness.h"
#include "runtime/training/memory_use.h"

namespace rumor {

// Kept by the node as it trains.
struct TrainingFigures {
  bool observes = false;  // it takes no steps, so it has a loss only where it evaluates
  std::uint64_t steps = 0;
  std::uint64_t steps_held = 0;  // steps without an update of their own, since the peer was ahead of the network
  std::uint64_t changes_undone = 0;  // of an outside loop, since they were not finite numbers or far too large
  std::uint64_t own_updates() const { return steps - steps_held; }
  double train_loss = 0;                 // moving average over own batches
  std::optional<double> loss, accuracy;  // of the last evaluation, on the test set
  std::uint64_t evaluations = 0;
  std::uint64_t own_payload_bytes = 0;  // of all own updates
  std::uint64_t own_entries = 0;
  std::uint64_t entries_at_range_end = 0;
  double own_bound_bits = 0;  // bits that independent positions and signs would need for them
  // Periods (nearly: own updates) between making and applying an update of another peer.
  std::uint64_t updates_of_others = 0, staleness_sum = 0, staleness_max = 0;
  double seconds_waited = 0;  // for others, by the rules against staleness
  double seconds_waited_links = 0;  // for links, with exchange.narrow_links = "wait"
};

inline constexpr FigureRow<TrainingFigures> training_rows[] = {
    figure<TrainingFigures>("loss", [](const auto& t) {
      return t.observes ? figure_value(t.loss) : figure_value(t.loss.value_or(t.train_loss));
    })
        .shown("loss", Form::decimal, 6)
        .explained("On the test set; before the first evaluation, and always in a pipeline, on own batches."),
    figure<&TrainingFigures::loss>("test_loss").gauge("rumor_test_loss", "Loss on the test set, in nats.")
        .curve("loss", "test/loss"),
    figure<&TrainingFigures::train_loss>("train_loss").shown("own batches", Form::decimal)
        .gauge("rumor_train_loss", "Moving average of the loss over own batches, in nats.")
        .curve("train_loss", "train/loss"),
    figure<&TrainingFigures::accuracy>("accuracy").shown("accuracy", Form::share, 8)
        .gauge("rumor_test_accuracy_ratio", "Share of the test set classified correctly.")
        .curve("accuracy", "test/accuracy"),
    figure<&TrainingFigures::steps>("steps").shown("steps", Form::count)
        .counter("rumor_steps_total", "Training steps of this peer."),
    figure<&TrainingFigures::steps_held>("steps_held").shown("without an update", Form::fault)
        .counter("rumor_steps_held_total", "Steps without an update of their own: the peer was ahead of the network."),
    figure<&TrainingFigures::changes_undone>("changes_undone").shown("changes undone", Form::fault)
        .counter("rumor_changes_undone_total",
                 "Changes by a program's loop that were undone: not finite numbers, or far too large."),
    figure<&TrainingFigures::seconds_waited>("seconds_waited").shown("waited", Form::seconds)
        .counter("rumor_training_waited_seconds_total", "Time that training waited for others, as the run file asks."),
    figure<&TrainingFigures::seconds_waited_links>("seconds_waited_links").shown("waited for links", Form::seconds)
        .counter("rumor_training_waited_links_seconds_total", "Time that training waited for links to carry updates."),
};

struct TensorStatus {
  std::string name;
  std::uint64_t params = 0, entries = 0;  // entries of the last own update
  double residual_rms = 0;
  double threshold = 0;  // smallest magnitude sent, in weight units; 0: nothing was sent
};

inline constexpr FigureRow<TensorStatus> tensor_rows[] = {
    figure<&TensorStatus::name>("name").shown("tensor", Form::text),
    figure<&TensorStatus::params>("params").shown("parameters", Form::count),
    figure<&TensorStatus::entries>("entries"),
    figure<TensorStatus>("density", [](const auto& t) {
      return t.params > 0 ? static_cast<double>(t.entries) / static_cast<double>(t.params) : 0.0;
    }).shown("density", Form::share)
        .gauge("rumor_tensor_density_ratio", "Entries of the last update over the parameters of each tensor."),
    figure<&TensorStatus::threshold>("threshold").shown("\u03c4", Form::small)
        .gauge("rumor_tensor_threshold", "Smallest magnitude sent of each of the first 256 tensors, in weight units."),
    figure<&TensorStatus::residual_rms>("residual_rms").shown("residual", Form::small)
        .explained("Learned and not yet sent, root mean square, as of the last evaluation."),
};

// The limit of training: a word for programs (joining, alone, compute, pace, link, slow_peer, done), and a sentence
// for people.
struct Limit {
  std::string kind, text;
  double compute_share = 0;  // of the last ten seconds, spent on steps and evaluations
};

inline constexpr FigureRow<Limit> limit_rows[] = {
    figure<&Limit::kind>("kind").shown("limit", Form::hidden, 9)
        .one_of("joining alone compute pace link slow_peer done", "rumor_limit",
        "1 for what limits training now, 0 for the others."),
    figure<&Limit::text>("text").shown("limit", Form::line),
    figure<&Limit::compute_share>("compute_share").shown("computing", Form::share)
        .gauge("rumor_compute_ratio", "Share of the last ten seconds spent on steps and evaluations."),
};

struct LogStatus {
  std::uint64_t updates = 0, bytes = 0;
  std::uint64_t dropped = 0;  // although not all members had acknowledged them
  std::string trouble;        // why the disk refused the last update; empty: it did not
};

inline constexpr FigureRow<LogStatus> log_rows[] = {
    figure<&LogStatus::updates>("updates").shown("updates", Form::count),
    figure<&LogStatus::bytes>("bytes").shown("size", Form::bytes),
    figure<&LogStatus::dropped>("dropped").shown("dropped", Form::fault),
    figure<&LogStatus::trouble>("trouble").shown("log", Form::line),
};

struct ReachStatus {
  std::string by;                       // node that dialled this one last; empty: none has
  std::optional<double> seconds_ago;    // when it did
  std::optional<double> asked_seconds;  // since neighbours were asked to dial this peer
};

inline constexpr FigureRow<ReachStatus> reach_rows[] = {
    figure<ReachStatus>("by", [](const auto& r) { return r.seconds_ago ? figure_value(r.by) : FigureValue(); }),
    figure<&ReachStatus::seconds_ago>("seconds_ago"),
    figure<&ReachStatus::asked_seconds>("asked_seconds_ago"),
};

// The export of a follower (daemon/export/folder_exports.h).
struct ExportStatus {
  std::string folder;         // empty: it exports nothing
  std::uint64_t exports = 0;  // written by this process
  std::uint64_t samples = 0;  // of the export in the folder
  std::string digest;         // the same
  std::string trouble;        // why the last one was not written; empty: it was
  std::optional<double> seconds_ago = {};  // since the last one

  // A figure of a peer that exports; of another nothing.
  FigureValue shown(FigureValue value) const { return folder.empty() ? FigureValue() : value; }
};

inline constexpr FigureRow<ExportStatus> export_rows[] = {
    figure<ExportStatus>("folder", [](const auto& e) { return e.shown(e.folder); }).shown("to", Form::text),
    figure<ExportStatus>("exports", [](const auto& e) { return e.shown(e.exports); }).shown("written", Form::count)
        .counter("rumor_exports_total", "Exports that this follower has written."),
    figure<ExportStatus>("samples", [](const auto& e) { return e.shown(e.samples); })
        .shown("after samples", Form::count)
        .gauge("rumor_export_samples", "Samples of the run behind the weights that are exported."),
    figure<ExportStatus>("digest", [](const auto& e) { return e.shown(e.digest); }).shown("digest", Form::text),
    figure<&ExportStatus::seconds_ago>("seconds_ago").shown("ago", Form::seconds),
    figure<ExportStatus>("trouble", [](const auto& e) { return e.shown(e.trouble); }).shown("export", Form::line)
        .gauge("rumor_export_trouble", "1 when the last export could not be written."),
};

// A peer of the stage above, as the one below measures it (gossip/PIPELINE.md 5).
struct UpperStatus {
  std::string node;  // hex
  std::uint64_t answered = 0, awaited = 0;  // micro-batches of ours
  std::optional<double> pace_ms, round_trip_ms;
  // Micro-batches in flight there that leave no gap while a question and its answer travel.
  std::optional<double> in_flight_wanted() const {
    if (!pace_ms || !round_trip_ms || *pace_ms <= 0) return std::nullopt;
    return 1 + *round_trip_ms / *pace_ms;
  }
};

inline constexpr FigureRow<UpperStatus> upper_rows[] = {
    figure<&UpperStatus::node>("node_id").shown("peer", Form::id, 8),
    figure<&UpperStatus::answered>("answered").shown("answered", Form::count, 9)
        .counter("rumor_stage_upper_answered_micro_batches_total",
                 "Micro-batches of this peer that each peer of the stage above has answered, since it was linked."),
    figure<&UpperStatus::awaited>("awaited").shown("awaited", Form::count, 8)
        .gauge("rumor_stage_upper_awaited_micro_batches",
               "Micro-batches whose answer each peer of the stage above owes."),
    figure<&UpperStatus::pace_ms>("pace_ms").shown("pace", Form::ms, 9)
        .gauge("rumor_stage_upper_pace_seconds",
               "Time between two answers of each peer of the stage above, while it has work of this one.", 1e-3),
    figure<&UpperStatus::in_flight_wanted>("in_flight_wanted").shown("in flight wanted", Form::decimal, 16)
        .explained("1 + round trip / pace: so many micro-batches in flight keep that peer busy."),
};

// A peer that serves a stage of a pipeline (gossip/PIPELINE.md).
struct StageStatus {
  std::uint64_t stage = 0, stages = 0;  // 0: the run is no stage
  std::string pipeline = {};            // its id, hex
  std::uint64_t below = 0, above = 0;   // links to peers of the neighbouring stages
  std::uint64_t waiting = 0;            // micro-batches here that wait for their turn or for an upper neighbour
  std::uint64_t counted = 0;            // micro-batches in own steps
  std::uint64_t sent_again = 0;         // to another upper neighbour
  std::uint64_t dropped = 0;            // micro-batches that another peer counts
  // Seconds in which a step had nothing to compute, by what it waited for: answers from above; the same, while the link
  // had more to send than it could; micro-batches from below.
  double waited_above = 0, waited_link = 0, waited_below = 0;
  std::vector<UpperStatus> uppers = {};
  std::string chosen = {};              // why the peer has chosen this stage; empty: it was told. Set by the driver

  std::optional<double> in_flight_wanted() const {
    std::optional<double> most;
    for (const UpperStatus& upper : uppers) most = std::max(most, upper.in_flight_wanted());
    return most;
  }

  // A figure of a stage; of an ordinary run nothing.
  FigureValue shown(FigureValue value) const { return stage == 0 ? FigureValue() : value; }
};

inline constexpr FigureRow<StageStatus> stage_rows[] = {
    figure<StageStatus>("stage", [](const auto& s) { return s.shown(s.stage); }).shown("stage", Form::count)
        .gauge("rumor_stage", "Stage of the pipeline that this peer serves, from 1."),
    figure<StageStatus>("stages", [](const auto& s) { return s.shown(s.stages); }).shown("of", Form::count),
    figure<StageStatus>("chosen", [](const auto& s) { return s.chosen.empty() ? FigureValue() : s.chosen; })
        .shown("chosen", Form::text),
    figure<StageStatus>("pipeline", [](const auto& s) { return s.shown(s.pipeline); }),
    figure<StageStatus>("below", [](const auto& s) { return s.shown(s.below); }).shown("linked below", Form::count)
        .gauge("rumor_stage_links_below", "Links to peers of the stage below."),
    figure<StageStatus>("above", [](const auto& s) { return s.shown(s.above); }).shown("above", Form::count)
        .gauge("rumor_stage_links_above", "Links to peers of the stage above."),
    figure<StageStatus>("waiting", [](const auto& s) { return s.shown(s.waiting); })
        .shown("micro-batches waiting", Form::count)
        .gauge("rumor_stage_waiting_micro_batches", "Micro-batches that wait for their turn or for the stage above."),
    figure<StageStatus>("counted", [](const auto& s) { return s.shown(s.counted); }).shown("in steps", Form::count)
        .counter("rumor_stage_counted_micro_batches_total", "Micro-batches in steps of this peer."),
    figure<StageStatus>("sent_again", [](const auto& s) { return s.shown(s.sent_again); })
        .shown("sent again", Form::fault)
        .counter("rumor_stage_sent_again_total", "Micro-batches sent to another peer of the stage above."),
    figure<StageStatus>("dropped", [](const auto& s) { return s.shown(s.dropped); }).shown("dropped", Form::fault)
        .counter("rumor_stage_dropped_micro_batches_total", "Micro-batches that another peer of this stage counts."),
    figure<&StageStatus::in_flight_wanted>("in_flight_wanted").shown("in flight wanted", Form::decimal)
        .gauge("rumor_stage_in_flight_wanted_micro_batches",
               "1 + round trip / pace, the most of all peers of the stage above."),
    figure<StageStatus>("waited_above_s", [](const auto& s) { return s.shown(s.waited_above); })
        .shown("waited for answers", Form::seconds)
        .counter("rumor_stage_waited_above_seconds_total",
                 "Time without work in which steps waited for answers from above."),
    figure<StageStatus>("waited_link_s", [](const auto& s) { return s.shown(s.waited_link); })
        .shown("while links were full", Form::seconds)
        .counter("rumor_stage_waited_link_seconds_total", "The same, while a link to the stage above was full."),
    figure<StageStatus>("waited_below_s", [](const auto& s) { return s.shown(s.waited_below); })
        .shown("waited for micro-batches", Form::seconds)
        .counter("rumor_stage_waited_below_seconds_total",
                 "Time without work in which steps waited for micro-batches from below."),
};

struct NodeStatus {
  std::string run_name, run_id, node_id, phase, waiting_for;
  bool waits_for_links = false;  // by exchange.narrow_links; no row of its own
  std::string exchange = "broadcast";  // another: then digest and updates are of the peer's own public copy
  std::uint64_t params = 0;
  std::uint64_t samples = 0, samples_planned = 0;
  std::optional<std::uint32_t> picture_side;  // pixels, at this progress of a run with data.resolution
  std::uint64_t updates = 0;
  std::string digest;          // hex
  bool digests_equal = false;  // PeerInfo::digest_equal of every link
  std::size_t live_peers = 0, members = 0;
  double rate = 0, threshold = 0, target_density = 0;
  std::uint32_t batches = 1;  // mini-batches of an own update (exchange.local_steps)
  double rate_factor = 1;   // by the rules against staleness; included in `rate`
  double density_factor = 1;        // the share of target_density that links allow (Protocol::density_factor)
  double in_flight_weight = 0;      // runtime/exchange/view_weight.h
  std::optional<double> agreement;  // the same; none: not measured
  bool unlike = false;              // ViewWeight::is_unlike()
  double residual_age = 0;  // residual / entries of the last update: updates until a change is sent (Little's law)
  std::size_t in_flight = 0;
  TrainingFigures training;
  std::vector<PeerStaleness> staleness;  // of the live peers
  std::vector<NodeId> lost;              // whose last link to us ended without a goodbye; in order
  std::string identity_trouble;          // Protocol::identity_trouble()
  std::string audit_trouble;             // Audits::withheld_trouble()
  std::vector<gossip::PeerInfo> peers;
  ContributionTable contributions;  // empty where peers have models of their own
  std::vector<TensorStatus> tensors;
  gossip::Counters traffic;
  ReachStatus reach;
  StageStatus stage;
  LogStatus log;
  MemoryUse memory;  // the trainer's as of its last step or evaluation
  // Set by the driver:
  std::string storage_trouble;  // why the last checkpoint could not be written; empty: it was
  ExportStatus exports;         // of a follower
  std::string port_mapping;     // the address that the router gave, or why there is none; empty: no router is asked
  double pause_ms = 0;          // longest wait for the next step in the last ten seconds
  Limit limit;                  // now (daemon/status/bottleneck.h)
  double uptime_seconds = 0, unix_seconds = 0;
  std::string version;  // of the program

  double progress() const;  // share of the planned samples
  double density() const;
  double bits_per_entry() const;
  double bound_bits_per_entry() const;
  double staleness_mean() const;
  double bytes_per_parameter() const;
  std::uint64_t dense_bytes() const;  // of the own updates in fp32, sent once
  double update_bytes_mean() const;   // payload of an own update
  double ratio() const;               // dense_bytes() / the payload bytes of the own updates
};

// All figures of a peer. Those of NodeStatus{} describe what any peer has.
FigureSheet status_figures(const NodeStatus& status);

}  // namespace rumor
