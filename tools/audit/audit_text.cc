// The findings of an audit, for people and for programs.
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/base/text.h"
#include "runtime/report/table.h"
#include "tools/audit/audited_state.h"

namespace rumor::tools {

namespace {
constexpr double seconds_between_lines = 2;

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
}  // namespace

AuditProgress::AuditProgress(std::uint64_t updates) : updates_(updates), start_(seconds()) { watch_for_signals(); }

bool AuditProgress::operator()() {
  ++made_;
  const double passed = seconds() - start_;
  if (passed >= next_) {
    next_ = passed + seconds_between_lines;
    const double left = passed * (static_cast<double>(updates_) / static_cast<double>(made_) - 1);
    std::fprintf(stderr, "%llu of %llu updates made again, about %.0f s left\n", static_cast<unsigned long long>(made_),
                 static_cast<unsigned long long>(updates_), std::max(left, 0.0));
  }
  interrupted_ = tools::interrupted();
  return !interrupted_;
}

std::string to_table(const std::vector<audit::StreamFindings>& findings) {
  sim::Table table{.head = {"peer", "stream", "updates", "samples", "agree", "differ", "cannot tell", "fewer peers"},
                   .rows = {}, .words = 2};
  std::string doubts;
  for (const audit::StreamFindings& one : findings) {
    table.rows.push_back({one.origin.brief(), one.stream.brief(), str(one.updates), str(one.samples), str(one.agree),
                          str(one.differ), str(one.cannot_tell), str(one.fewer_peers)});
    if (one.first_doubt > 0)
      doubts += str("  stream ", one.stream.brief(), " of peer ", one.origin.brief(), ": update ", one.first_doubt,
                    one.differ > 0 ? " differs: " : " cannot be told: ", one.why, "\n");
  }
  return sim::text_table(table) + (doubts.empty() ? "" : "\n" + doubts);
}

std::string to_json(const std::vector<audit::StreamFindings>& findings, const AuditedState& state,
                    bool stopped_early) {
  nlohmann::ordered_json streams = nlohmann::ordered_json::array();
  std::uint64_t updates = 0, agree = 0, differ = 0, cannot_tell = 0;
  for (const audit::StreamFindings& one : findings) {
    nlohmann::ordered_json stream = {
        {"node_id", one.origin.hex()}, {"stream", one.stream.hex()},      {"updates", one.updates},
        {"samples", one.samples},      {"agree", one.agree},              {"differ", one.differ},
        {"cannot_tell", one.cannot_tell}, {"fewer_peers", one.fewer_peers}};
    if (one.first_doubt > 0) stream["first_doubt"] = {{"seq", one.first_doubt}, {"why", one.why}};
    streams.push_back(std::move(stream));
    updates += one.updates;
    agree += one.agree;
    differ += one.differ;
    cannot_tell += one.cannot_tell;
  }
  const nlohmann::ordered_json json = {{"run", state.run().form.run.hex()},
                                       {"updates", updates},
                                       {"agree", agree},
                                       {"differ", differ},
                                       {"cannot_tell", cannot_tell},
                                       {"before_log", state.before_log()},
                                       {"stopped_early", stopped_early},
                                       {"streams", std::move(streams)}};
  return json.dump(2) + "\n";
}

}  // namespace rumor::tools
