#include "runtime/node/audits.h"

#include <algorithm>
#include <cmath>

#include "compress/payload/recorded.h"
#include "runtime/base/bytes.h"
#include "runtime/base/text.h"

namespace rumor {

namespace {

constexpr std::uint32_t owed_max = 4;  // segments to draw
constexpr std::uint32_t coin_sides = 1 << 30;

std::uint64_t segment_start(std::uint64_t seq, std::uint64_t segment) { return (seq - 1) / segment * segment + 1; }

std::uint64_t segments_of(const NodeCore& core) {
  return core.config.segment_updates(core.trainer->layout().params());
}

// How many states an asker gets for each own segment, and how many own segments are made again for charges.
double answered(const NodeCore& core) { return std::max(0.1, 2 * core.config.audit_share); }

}  // namespace

Audits::Audits(NodeCore& core, Incoming& incoming, Outgoing& outgoing)
    : core_(core),
      incoming_(incoming),
      outgoing_(outgoing),
      segment_(segments_of(core)),
      draws_(core.options.audit_secret, core.options.node, core.config.audit_share > 0 ? segment_ : 0,
             core.options.audited),
      shares_(answered(core)),
      charge_gap_(static_cast<std::uint64_t>(std::ceil(1 / answered(core))) * segment_),
      audit_steps_(static_cast<double>(segment_)),
      coins_(Prng::named(ByteReader(core.options.audit_secret.view()).u64(), "coins")) {
  auto data = core.trainer->repeatable_data();
  if (segment_ == 0 || !data) return;
  task_ = audit::AuditTask{core.config, incoming.form(), std::move(data), outgoing.data_hash()};
}

std::string Audits::idle_reason() const {
  if (core_.config.audit_share == 0 || task_) return {};
  if (segment_ == 0)
    return "audit.share does nothing here: the updates of a recurrent model, or of one with more than 20 million "
           "parameters, have no segments that could be audited";
  return "audit.share does nothing here: a peer that trains on a GPU, or a program's model, cannot make the steps of "
         "others again";
}

// ---- the port ----

std::shared_ptr<const gossip::KeptState> Audits::held_state(const UpdateKey& update) const {
  if (update.stream == core_.options.stream) return outgoing_.kept_states().find(update.seq);
  for (const auto& [key, state] : evidence_)
    if (key == update) return state;
  return nullptr;
}

std::shared_ptr<const gossip::KeptState> Audits::state(const UpdateKey& update, const NodeId& asker) {
  auto state = held_state(update);
  if (!state || !shares_.take(asker, core_.own_updates / segment_)) return nullptr;
  if (over_ != never) stays_until_ = std::min(core_.turn->now + stay, over_ + stay_max);
  return state;
}

std::vector<Audits::Job*> Audits::waiting_jobs(const UpdateKey& update) {
  std::vector<Job*> waiting;
  const auto take = [&](Job& job) {
    const audit::Segment& segment = job.segments.front();
    if (job.asked && update == UpdateKey{segment.stream, segment.first}) waiting.push_back(&job);
  };
  if (job_) take(*job_);
  for (Job& job : last_) take(job);
  return waiting;
}

void Audits::state_arrived(const UpdateKey& update, Bytes state) {
  for (Job* const job : waiting_jobs(update)) {
    job->asked = false;
    job->state = state;
    job->slow = job->owed && core_.turn->now - job->asked_at > slow_state;
    if (!job->owed) withheld_.given_early(job->segments.front().origin);
  }
}

void Audits::state_failed(const UpdateKey& update, const std::string& why) {
  for (Job* const job : waiting_jobs(update)) {
    job->asked = false;
    job->refused = !job->owed;
    job->no_state = why;
  }
}

void Audits::check(const gossip::Revocation& proof, const NodeId& holder) {
  checks_.push_back({.purpose = Purpose::proof, .segments = {}, .accused = proof.false_update, .proof = proof,
                     .holder = holder});
}

// Anybody may charge, so the segments that are made again are as few as the states that an asker gets.
void Audits::charged(const UpdateKey& update) {
  if (!task_ || update.stream != core_.options.stream || update.seq > core_.own_updates || update.seq == 0) return;
  const std::uint64_t first = segment_start(update.seq, segment_);
  if (checks_.size() >= checks_max || (charged_ != 0 && first < charged_ + charge_gap_)) return;
  charged_ = first;
  checks_.push_back({.purpose = Purpose::charge, .segments = {}, .accused = update});
}

// ---- inputs of the node ----

void Audits::on_update(const gossip::UpdateHeader& header) {
  if (task_) draws_.on_update(header.key, header.origin, incoming_.have());
}

void Audits::trained(Duration time) {
  has_trained_ = true;
  if (core_.config.audit_share == 0 || !task_) return;
  const double seconds = to_seconds(time);
  trained_seconds_ += seconds;
  step_seconds_ = step_seconds_ == 0 ? seconds : step_seconds_ + 0.1 * (seconds - step_seconds_);
  const double coin = static_cast<double>(coins_.below(coin_sides)) / coin_sides;
  const double share = core_.config.audit_share / (1 - core_.config.audit_share);
  if (coin * audit_steps_ < share) owed_ = std::min(owed_ + 1, owed_max);
}

void Audits::slice_done(Duration time) {
  if (job_) job_->took += time;
}


// ---- one audit after another ----

void Audits::advance(Turn& turn) {
  carry_out_accusations(turn);
  skip_impossible(turn);
}

void Audits::skip_impossible(Turn& turn) {
  for (;;) {
    if (!job_) {
      job_ = next_job();
      if (!job_) return;
      if (job_->purpose != Purpose::drawn || over_ == never) begin(*job_, turn);
    }
    const std::uint64_t seq = job_->segments.front().first;
    if (job_->damaged) {
      finish_segment({.finding = {audit::Verdict::differs, *std::exchange(job_->damaged, {})}, .seq = seq}, turn);
    } else if (job_->no_state) {
      finish_segment({.finding = {audit::Verdict::cannot_tell, *std::exchange(job_->no_state, {})}, .seq = seq}, turn);
    } else {
      return;
    }
  }
}

bool Audits::may_draw() const { return core_.config.audit_share > 0 && (owed_ > 0 || has_time()); }

bool Audits::has_time() const { return core_.phase != Phase::training || core_.options.observe; }

std::optional<Audits::Job> Audits::next_job() {
  if (!checks_.empty()) {
    Job job = std::move(checks_.front());
    checks_.pop_front();
    const bool own = job.purpose == Purpose::charge;
    job.segments = segments_around(job.accused, own ? core_.options.node : job.proof.node);
    return job;
  }
  if (over_ != never) return next_last();
  if (!task_ || !may_draw()) return std::nullopt;
  const auto drawn = draws_.next(incoming_.have());
  if (!drawn) return std::nullopt;
  owed_ -= std::min(owed_, 1u);
  return Job{.purpose = Purpose::drawn, .segments = {*drawn}};
}

// A root is wrong when the segment before it ends in another state, so that one comes first.
std::deque<audit::Segment> Audits::segments_around(const UpdateKey& update, const NodeId& origin) const {
  if (segment_ == 0) return {{origin, update.stream, update.seq, update.seq}};
  const std::uint64_t first = segment_start(update.seq, segment_);
  std::deque<audit::Segment> segments;
  if (update.seq == first && first > 1) segments.push_back({origin, update.stream, first - segment_, first - 1});
  segments.push_back({origin, update.stream, first, update.seq});
  return segments;
}

void Audits::begin(Job& job, Turn& turn) {
  const audit::Segment& segment = job.segments.front();
  const auto update = task_ ? incoming_.find({segment.stream, segment.first}) : std::nullopt;
  const auto parts = update ? compress::split_record(*update->payload) : std::nullopt;
  if (!parts) {
    job.no_state = task_ ? "the log does not have its first update" : "this peer cannot make its steps again";
    return;
  }
  const auto tape = audit::TapeReader(segment_, segment.first).read(parts->record);
  if (!tape) {
    job.damaged = tape.error().text;
  } else if (tape->empty() || !tape->front().record.segment) {
    const audit::Finding found = audit::not_repeatable(core_.config);
    (found.verdict == audit::Verdict::differs ? job.damaged : job.no_state) = found.why;
  } else {
    find_state(job, tape->front().record, turn);
  }
}

void Audits::find_state(Job& job, const audit::StepRecord& first, Turn& turn) {
  const audit::Segment& segment = job.segments.front();
  const UpdateKey key{segment.stream, segment.first};
  if (segment.first == 1 && !first.start->continues) {
    job.state = Bytes();
  } else if (const auto held = held_state(key)) {
    job.state = held->bytes;
  } else if (first.segment->bytes == 0 || first.segment->bytes > limits::state_bytes_max) {
    job.no_state = "it names a state of a size that none has";
  } else {
    job.asked = true;
    job.asked_at = turn.now;
    job.asked_bytes = first.segment->bytes;
    job.owed = segment.origin != core_.options.node &&
               withheld_.ask(segment.origin, segment.stream, segment.first / segment_);
    core_.protocol->want_state({key, first.segment->root, first.segment->bytes, holders_of(job)}, turn.now,
                               turn.network);
  }
}

// A state of our own that is no longer kept has whoever charges us.
std::vector<NodeId> Audits::holders_of(const Job& job) const {
  std::vector<NodeId> holders;
  if (!job.holder.is_zero()) holders.push_back(job.holder);
  if (job.segments.front().origin != core_.options.node) {
    holders.push_back(job.segments.front().origin);
  } else {
    for (const gossip::PeerInfo& peer : core_.protocol->peers()) holders.push_back(peer.node);
  }
  return holders;
}

void Audits::start() {
  audit::AuditTask task = *task_;
  task.parallel = &core_.trainer->parallel();
  job_->audit = std::make_unique<audit::SegmentAudit>(std::move(task), incoming_.replica().state(),
                                                      job_->segments.front(), *job_->state);
}

bool Audits::begin_slice(Turn& turn) {
  const audit::SegmentAudit::Find find = [this](const UpdateKey& key) { return incoming_.find(key); };
  // Once begun an audit goes on with a slice after each own step: the longer it takes, the longer a cheat stays.
  while (job_ && (has_trained_ || has_time())) {
    if (!job_->audit && job_->state) start();
    if (!job_->audit) return false;
    if (job_->audit->prepare(find)) {
      has_trained_ = false;
      core_.begin_computing(turn.now);
      turn.out.push_back(StartAudit{job_->audit.get()});
      return true;
    }
    finish_segment(Outcome(job_->audit->outcome()), turn);
    advance(turn);
  }
  return false;
}

void Audits::finish_segment(const Outcome& outcome, Turn& turn) {
  job_->audit.reset();
  if (outcome.finding.verdict == audit::Verdict::differs || job_->segments.size() == 1) return conclude(outcome, turn);
  job_->untold = job_->untold || outcome.finding.verdict == audit::Verdict::cannot_tell;
  job_->segments.pop_front();
  job_->state.reset();
  begin(*job_, turn);
}

}  // namespace rumor
