#include "tools/commands/doctor_stages.h"

#include "gossip/pipeline/pipeline.h"
#include "runtime/base/text.h"
#include "runtime/stages/stage_costs.h"

namespace rumor::tools {

namespace {

constexpr double assumed_mbit = 100;
constexpr double slow_seconds = 1;  // on the link for one micro-batch

}  // namespace

void check_borders(Findings& out, const RunConfig& config, const models::DataSet& data) {
  if (config.pipeline.stages < 2) return;
  const auto costs = stage_costs(config, data);
  if (!costs) return out.bad("pipeline", costs.error().text, "the message names the key of the run file");
  const double mbit = config.up_mbit > 0 ? config.up_mbit : assumed_mbit;
  for (std::size_t i = 0; i + 1 < costs->size(); ++i) {
    const auto up = static_cast<double>((*costs)[i].up_bytes);
    const auto down = static_cast<double>((*costs)[i + 1].down_bytes);
    const double seconds = up * 8 / (mbit * 1e6);
    const std::string told =
        str(bytes_text(up), " up and ", bytes_text(down), " down a micro-batch (", config.pipeline.border, "); at ",
            mbit, " Mbit/s ", fixed(seconds * 1e3, 1), " ms up, ", fixed(micro_batch_rows(config) / seconds, 0),
            " rows a second");
    const std::string what = str("border ", i + 1, "-", i + 2);
    if (seconds < slow_seconds) {
      out.good(what, told);
    } else {
      out.warn(what, told, "pipeline.border = \"int8\" takes a quarter of f32; or cut the model where it is narrow "
                           "(pipeline.cut), or use a local network");
    }
  }
}

void check_stage(Findings& out, const PeerReport& peer) {
  const auto wanted = peer.number("stage.in_flight_wanted");
  if (!wanted) return;
  const auto window = static_cast<double>(gossip::PipelineOptions{}.window);
  const std::string told = str("links to the stage above want ", fixed(*wanted, 1),
                               " micro-batches in flight (1 + round trip / pace); a peer has at most ", window);
  if (*wanted <= window) return out.good("pipeline", told);
  out.warn("pipeline", told, "larger micro-batches take longer to compute: lower pipeline.micro_batches, or raise "
                             "optimizer.batch; or dial peers that are nearer");
}

}  // namespace rumor::tools
