#include "tools/stats/stats_peer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "compress/payload/recorded.h"
#include "runtime/base/text.h"
#include "runtime/daemon/state/file_disk.h"
#include "runtime/daemon/state/storage.h"
#include "runtime/daemon/status/http_get.h"
#include "runtime/replica/capture.h"
#include "runtime/replica/checkpoint.h"
#include "runtime/replica/update_log.h"
#include "tools/words/command.h"

namespace rumor::tools {

namespace {

// Only this many of a log's updates are read, the newest.
constexpr std::size_t logged_updates_max = 4'096;

Result<void> add(compress::Statistics& statistics, const RunForm& form, BytesView payload) {
  const auto update = compress::decode(form.layout, compress::update_part(payload));
  if (!update) return update.error();
  statistics.add(*update, true);
  return {};
}

// Adds facts from a peer's status that its updates do not show.
void add_status(StatsReport& report, const std::string& status) {
  const auto said = nlohmann::json::parse(status, nullptr, false);
  if (said.is_object() && said.contains("guarantee") && said["guarantee"].is_string())
    report.guarantee = said["guarantee"].get<std::string>();
  const auto compression = said.is_object() ? said.value("compression", nlohmann::json::object()) : said;
  if (!compression.is_object()) return;
  const auto number = [](const nlohmann::json& object, const char* name) {
    const auto at = object.find(name);
    return at != object.end() && at->is_number() ? std::clamp(at->get<double>(), 0.0, 1e15) : 0.0;
  };
  report.residual_age = number(compression, "residual_age");
  const auto count = [&](const nlohmann::json& object, const char* name) {
    return static_cast<std::uint64_t>(number(object, name));
  };
  if (const auto staleness = compression.find("staleness"); staleness != compression.end() && staleness->is_object()) {
    report.staleness = Staleness{number(*staleness, "mean"), count(*staleness, "max"), 1, {}};
    if (staleness->contains("rate_factor")) report.staleness->rate_factor = number(*staleness, "rate_factor");
    for (const auto& peer : staleness->value("peers", nlohmann::json::array()))
      if (peer.is_object() && peer.contains("node_id") && peer["node_id"].is_string())
        report.staleness->peers.push_back(
            {peer["node_id"].get<std::string>(), number(peer, "mean"), count(peer, "updates"), count(peer, "max")});
  }
  const auto tensors = compression.find("tensors");
  if (tensors == compression.end() || !tensors->is_array()) return;
  for (std::size_t t = 0; t < std::min(tensors->size(), report.tensors.size()); ++t)
    if ((*tensors)[t].is_object()) report.tensors[t].residual_rms = number((*tensors)[t], "residual_rms");
}

}  // namespace

Result<StatsReport> stats_of_capture(const std::string& source, BytesView bytes) {
  const auto capture = decode_capture(bytes);
  if (!capture) return Error{capture.error().code, source + ": " + capture.error().text};
  compress::Statistics statistics(capture->form.layout, capture->form.grid_bits);
  for (std::size_t i = 0; i < capture->payloads.size(); ++i)
    if (auto added = add(statistics, capture->form, capture->payloads[i]); !added)
      return Error{Errc::corrupt, str(source, ": update ", i + 1, ": ", added.error().text)};
  return report_of(source, capture->form.layout, statistics, true);
}

Result<StatsReport> stats_of_state_directory(const std::string& directory) {
  const auto bytes = daemon::read_file(directory + "/checkpoint.1");
  if (!bytes)
    return Error{bytes.error().code,
                 directory + " holds no checkpoint that can be read; is it the --state directory of a peer?"};
  const auto form = read_checkpoint_form(*bytes);
  if (!form) return Error{form.error().code, directory + "/checkpoint.1: " + form.error().text};
  const auto checkpoint = decode_checkpoint(*form, *bytes);
  if (!checkpoint)
    return Error{checkpoint.error().code, directory + "/checkpoint.1: " + checkpoint.error().text};
  compress::Statistics statistics(form->layout, form->grid_bits);
  daemon::FileDisk disk = daemon::FileDisk::read_only(directory + "/kept");
  UpdateLog log(SIZE_MAX, 0);
  if (auto opened = log.open(disk, form->run); !opened) return opened.error();
  const std::vector<UpdateKey> keys = log.keys();
  for (std::size_t k = keys.size() - std::min(keys.size(), logged_updates_max); k < keys.size(); ++k) {
    const auto update = log.find(keys[k]);
    if (!update) continue;
    if (auto added = add(statistics, *form, *update->payload); !added)
      return Error{Errc::corrupt, directory + ": an update of its log: " + added.error().text};
  }
  StatsReport report = report_of(directory, form->layout, statistics, true);
  add_residual(report, form->layout, statistics, checkpoint->local.residual);
  return report;
}

Result<StatsReport> stats_of_running_peer(const std::string& host_port, const std::string& token_file) {
  const auto token = load_status_token(token_file);
  if (!token) return token.error();
  const auto updates = daemon::http_get(host_port, "/updates", *token);
  if (!updates) return updates.error();
  Result<StatsReport> report = stats_of_capture(
      host_port, {reinterpret_cast<const std::uint8_t*>(updates->data()), updates->size()});
  if (!report) return report;
  const auto status = daemon::http_get(host_port, "/status", *token);
  if (!status) return status.error();
  add_status(*report, *status);
  return report;
}

}  // namespace rumor::tools
