#include "runtime/daemon/loop/follower.h"

#include <chrono>
#include <utility>

namespace rumor::daemon {

namespace {

std::uint64_t seconds_since_1970() {
  return static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch() / std::chrono::seconds(1));
}

ExportedWeights weights_of(const Node& node, TimePoint now) {
  ExportedWeights weights = exported_replica(node.form(), node.replica().state());
  weights.contributions = node.status(now).contributions;
  weights.unix_seconds = seconds_since_1970();
  return weights;
}

}  // namespace

PeerOptions following_options(RunConfig config) {
  PeerOptions options;
  options.config = std::move(config);
  options.config.listen = "127.0.0.1:0";
  options.config.advertise.clear();
  options.config.map_port.clear();
  options.following.emplace();
  return options;
}

Result<std::unique_ptr<Follower>> Follower::open(const Following& following, FolderExports::Description description,
                                                 Worker& storage, Console& console) {
  std::unique_ptr<Follower> follower(new Follower(following, storage, console));
  if (!following.exports) return follower;
  auto exports = FolderExports::open(*following.exports, std::move(description));
  if (!exports) return exports.error();
  follower->exports_ = std::move(exports).value();
  return follower;
}

void Follower::adapt(const Following& following, NodeOptions& node) {
  node.audited = following.audited;
  node.observe = true;
  node.links = gossip::LinkCounts{.low = 1, .target = 1, .high = 1, .dialled = 1};
  node.advertise.clear();
  node.evaluation_rows = UINT32_MAX;  // losses are compared with each other
}

void Follower::judge(PeerEnd& end) const {
  if (trouble_.empty()) return;
  if (end.exit_status == 0) end.exit_status = 1;
  if (end.trouble.empty()) end.trouble = trouble_;
}

// A peer that nobody answers has caught up, too: with nobody.
void Follower::hand_over(const Node& node, TimePoint now) {
  done_ = true;
  if (!node.protocol().peers().empty()) return following_.once(weights_of(node, now));
  trouble_ = node.protocol().waiting_for();
}

void Follower::look(Node& node, TimePoint now, bool leaving) {
  if (!node.caught_up() || done_) return;
  if (following_.once && !leaving) return hand_over(node, now);
  if (exports_ && exports_->due(node.replica().digest(), now, leaving)) write(weights_of(node, now), now);
}

void Follower::evaluating(const Node& node, TimePoint now) {
  if (exports_ && exports_->plan().best) evaluated_ = weights_of(node, now);
}

void Follower::evaluated(double loss, TimePoint now) {
  std::optional<ExportedWeights> weights = std::exchange(evaluated_, std::nullopt);
  if (!weights || !exports_->improves(loss)) return;
  weights->loss = loss;
  write(std::move(*weights), now);
}

void Follower::write(ExportedWeights weights, TimePoint now) {
  const auto job = std::make_shared<const FolderExports::Job>(exports_->begin(std::move(weights), now));
  storage_.submit([job] { return FolderExports::write(*job); },
                  [this, job, now](const Result<void>& written) {
                    const std::string text = exports_->ended(*job, written, now);
                    trouble_ = written ? "" : written.error().text;
                    if (written) console_.line(text);
                    else if (!text.empty()) console_.warning(text);
                  });
}

}  // namespace rumor::daemon
