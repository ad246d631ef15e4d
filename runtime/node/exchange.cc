#include "runtime/node/exchange.h"

#include "runtime/base/text.h"
#include "runtime/node/broadcast_exchange.h"
#include "runtime/node/copies_exchange.h"
#include "runtime/node/node_core.h"

namespace rumor {

Result<void> Exchange::check(const RunConfig& config, Trainer& trainer) {
  if (config.mode != "broadcast" && !config.has_own_models())
    return Error{Errc::usage,
                 str("exchange.mode = \"", config.mode,
                     "\" is of the simulator alone; a peer runs \"broadcast\", \"average\" or \"codistill\"")};
  if (config.has_own_models() && trainer.own_model() == nullptr)
    return Error{Errc::usage, str("exchange.mode = \"", config.mode, "\" is for built-in models on a processor ",
                                  "(--device cpu) so far; set exchange.mode = \"broadcast\"")};
  if (config.records && config.mode != "broadcast")
    return Error{Errc::usage, str("audit.record is for exchange.mode = \"broadcast\", whose updates follow from ",
                                  "weights that all peers have; with \"", config.mode, "\" set audit.record = false")};
  if (config.pipeline.stages > 1 && config.model.units == models::UnitRange{})
    return Error{Errc::usage, str("pipeline.stages = ", config.pipeline.stages, ": a peer serves one stage of a model ",
                                  "that is cut; give `rumor peer` --stage, or set pipeline.stages = 1")};
  return {};
}

std::unique_ptr<Exchange> Exchange::make(NodeCore& core, HeldUpdates& held) {
  if (core.config.has_own_models()) return std::make_unique<CopiesExchange>(core, held);
  return std::make_unique<BroadcastExchange>(core, held);
}

}  // namespace rumor
