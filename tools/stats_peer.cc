#include "tools/stats_peer.h"

#include <cmath>

#include "runtime/base/text.h"
#include "runtime/capture.h"
#include "runtime/checkpoint.h"
#include "runtime/daemon/http_get.h"
#include "runtime/daemon/storage.h"

namespace rumor::tools {

namespace {

Result<void> add(compress::Statistics& statistics, const RunForm& form, BytesView payload) {
  const auto update = compress::decode(form.layout, payload);
  if (!update) return update.error();
  statistics.add(*update, std::ldexp(static_cast<double>(update->step), -form.grid_bits), true);
  return {};
}

double root_mean_square(const std::vector<float>& values, const TensorInfo& tensor) {
  double sum = 0;
  for (std::uint32_t i = tensor.offset; i < tensor.offset + tensor.size; ++i)
    sum += static_cast<double>(values[i]) * values[i];
  return std::sqrt(sum / tensor.size);
}

}  // namespace

Result<StatsReport> stats_of_capture(const std::string& source, BytesView bytes) {
  const auto capture = decode_capture(bytes);
  if (!capture) return Error{capture.error().code, source + ": " + capture.error().text};
  compress::Statistics statistics(capture->form.layout);
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
  compress::Statistics statistics(form->layout);
  if (checkpoint->local) {
    for (const gossip::StoredUpdate& update : checkpoint->local->log)
      if (auto added = add(statistics, *form, *update.payload); !added)
        return Error{Errc::corrupt, directory + "/checkpoint.1: an update of its log: " + added.error().text};
    for (std::size_t t = 0; t < form->layout.tensors().size(); ++t)
      statistics.tensors()[t].residual_rms =
          root_mean_square(checkpoint->local->residual, form->layout.tensors()[t]);
  }
  return report_of(directory, form->layout, statistics, true);
}

Result<StatsReport> stats_of_running_peer(const std::string& host_port) {
  const auto updates = daemon::http_get(host_port, "/updates");
  if (!updates) return updates.error();
  return stats_of_capture(host_port,
                          {reinterpret_cast<const std::uint8_t*>(updates->data()), updates->size()});
}

}  // namespace rumor::tools
