// rumor replay: a run made again from its log and its data, or one step of it, looked at.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "runtime/base/text.h"
#include "tools/audit/audited_state.h"

namespace rumor::tools {

namespace {

constexpr std::size_t entries_shown = 10, rows_shown = 32;

// "STREAM:SEQ", the stream by its first digits.
Result<UpdateKey> update_named(const std::string& text, const audit::RunAudit& all, const UpdateLog& log) {
  const auto colon = text.find(':');
  const Error wrong{Errc::usage, str("--at ", text, " wants STREAM:SEQ, such as 3f2a:120 (`rumor audit` has streams)")};
  if (colon == std::string::npos || colon == 0) return wrong;
  const std::string digits = text.substr(0, colon), number = text.substr(colon + 1);
  if (number.empty() || number.size() > 12 || number.find_first_not_of("0123456789") != std::string::npos) return wrong;
  std::set<StreamId> streams;
  for (const auto& [stream, origin] : all.streams()) streams.insert(stream);
  const auto found = one_named(streams, digits, "--at " + text);
  if (!found) return found.error();
  const UpdateKey key{*found, std::stoull(number)};
  if (!log.contains(key)) return Error{Errc::usage, str("--at ", text, ": the log does not have this update")};
  return key;
}

double norm_of(std::span<const float> values) {
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(squares);
}

std::string rows_of(const audit::ReplayedStep& step) {
  std::string rows;
  for (std::size_t i = 0; i < std::min(step.rows.size(), rows_shown); ++i) rows += str(i > 0 ? " " : "", step.rows[i]);
  if (step.rows.size() > rows_shown) rows += str(" and ", step.rows.size() - rows_shown, " more");
  return rows;
}

void print_step(const audit::ReplayedStep& step) {
  std::printf("  loss %.6f over %u samples; rate %.6g, %llu live peers, density %.6g%s%s\n", step.loss, step.samples,
              step.rate, static_cast<unsigned long long>(step.record.peers), step.record.density,
              step.record.held ? "; held back, no update" : "", step.record.flush ? "; a flush" : "");
  std::printf("  rows of the training data: %s\n", step.rows.empty() ? "none" : rows_of(step).c_str());
}

// The tensors in which the update has entries, those with the largest part of its squares first.
void print_tensors(const ParamLayout& layout, int grid_bits, const compress::SparseUpdate& update) {
  struct Share {
    std::string name;
    std::size_t entries = 0;
    double step = 0, squares = 0;
  };
  std::vector<Share> shares;
  for (const compress::StepRun& run : compress::step_runs(layout, update))
    for (std::size_t e = run.first; e < run.first + run.count; ++e) {
      const std::string& name = layout.tensor_at(update.index[e]).name;
      if (shares.empty() || shares.back().name != name) shares.push_back({.name = name});
      shares.back().step = std::ldexp(static_cast<double>(run.step), -grid_bits);
      shares.back().squares += shares.back().step * shares.back().step;
      ++shares.back().entries;
    }
  std::stable_sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) { return a.squares > b.squares; });
  double squares = 0;
  for (const Share& share : shares) squares += share.squares;
  std::printf("  update: %zu entries, norm %.6g; largest parts:\n", update.index.size(), std::sqrt(squares));
  for (std::size_t i = 0; i < std::min(shares.size(), entries_shown); ++i)
    std::printf("    %-32s %8zu entries of +-%.6g, norm %.6g\n", shares[i].name.c_str(), shares[i].entries,
                shares[i].step, std::sqrt(shares[i].squares));
}

int show_update(const std::string& at, const AuditedState& state) {
  audit::RunAudit all(state.run());
  const auto key = update_named(at, all, state.run().log);
  if (!key) return fail(key.error());
  AuditProgress progress(key->seq);
  const auto findings =
      all.audit({.stream = key->stream, .last = key->seq}, [&](const auto& replay, const auto& so_far) {
        if (so_far.stream != key->stream || so_far.updates != key->seq || replay.steps().empty()) return progress();
        std::printf("update %llu of stream %s, peer %s:\n", static_cast<unsigned long long>(key->seq),
                    key->stream.hex().c_str(), so_far.origin.hex().c_str());
        for (const audit::ReplayedStep& step : replay.steps()) print_step(step);
        print_tensors(state.run().form.layout, state.run().form.grid_bits, replay.steps().back().update);
        if (so_far.agree == so_far.updates)
          std::printf("  behind it waits a residual of norm %.6g\n", norm_of(replay.state().residual));
        return progress();
      });
  if (findings.empty() || findings.front().agree == key->seq) return 0;
  std::fputs(to_table(findings).c_str(), stdout);
  return 1;
}

}  // namespace

int run_replay_command(const ReplayCommand& command) {
  const auto state = AuditedState::open(command.run, command.state);
  if (!state) return fail(state.error());
  if (!command.at.empty()) return show_update(command.at, **state);
  audit::RunAudit all((*state)->run());
  AuditProgress progress(all.updates());
  const auto findings = all.audit({}, [&](const auto&, const auto&) { return progress(); });
  std::uint64_t agree = 0;
  for (const audit::StreamFindings& one : findings) agree += one.agree;
  std::fputs(to_table(findings).c_str(), stdout);
  if (progress.interrupted()) return fail({Errc::io, "interrupted: the table has what was made again until then"});
  if (agree != all.updates() || (*state)->before_log() > 0)
    return fail({Errc::mismatch, "not all of the run could be made again; the table says what, and why"});
  std::printf("\n  the whole run, made again: %llu updates, %llu samples, fingerprint %016llx, equal to the last bit\n",
              static_cast<unsigned long long>(all.updates()), static_cast<unsigned long long>((*state)->samples()),
              static_cast<unsigned long long>((*state)->digest().fingerprint));
  return 0;
}

}  // namespace rumor::tools
