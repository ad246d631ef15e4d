// rumor stats: detects the kind of SOURCE, and prints how well its updates compress.
#include <cstdio>
#include <filesystem>

#include "runtime/base/text.h"
#include "runtime/daemon/state/storage.h"
#include "runtime/replica/capture.h"
#include "tools/stats/stats_peer.h"
#include "tools/words/command.h"

namespace rumor::tools {

namespace {

Result<StatsReport> stats_of(const StatsCommand& command) {
  std::error_code ignored;
  const bool dense_options = command.density || command.budget_bytes;
  const auto not_dense = [&](const char* what) -> Error {
    return {Errc::usage,
            str("--density and --budget choose entries from dense changes; ", command.source, " is ", what)};
  };
  if (std::filesystem::is_directory(command.source, ignored)) {
    if (dense_options) return not_dense("a state directory");
    return stats_of_state_directory(command.source);
  }
  if (!std::filesystem::exists(command.source, ignored)) {
    if (command.source.find(':') == std::string::npos)
      return Error{Errc::not_found, str("there is no file or directory ", command.source,
                                        "; a running peer is named by its status address, HOST:PORT")};
    if (dense_options) return not_dense("a running peer");
    return stats_of_running_peer(command.source, command.token);
  }
  const auto bytes = daemon::read_file(command.source);
  if (!bytes) return bytes.error();
  if (!looks_like_capture(*bytes))
    return stats_of_update_file(command.source, command.density, command.budget_bytes);
  if (dense_options) return not_dense("a capture");
  return stats_of_capture(command.source, *bytes);
}

}  // namespace

int run_stats_command(const StatsCommand& command) {
  const auto report = stats_of(command);
  if (!report) return fail(report.error());
  if (command.json)
    if (auto written = write_file(*command.json, report->to_json()); !written) return fail(written.error());
  if (command.report)
    if (auto written = write_report(*command.report, report->to_page()); !written) return fail(written.error());
  if (command.json != "-") std::fputs(report->to_table().c_str(), stdout);
  if (command.report) std::fprintf(stderr, "report: %s/index.html\n", command.report->c_str());
  return report->round_trip_exact
             ? 0
             : fail({Errc::corrupt, "an update did not survive coding and decoding; please report it"});
}

}  // namespace rumor::tools
