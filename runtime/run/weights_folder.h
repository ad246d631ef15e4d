// The model of a run that begins with a folder of weights: config.json beside them decides the architecture.
//
// Thread: plain function.
#pragma once

#include "runtime/base/result.h"
#include "runtime/run/run_config.h"

namespace rumor {

// Sets the [model] keys of `config` as config.json in the folder model.weights says (models/weights/model_json.h has
// the supported types). Nothing changes without model.weights, where that is a file, or without a config.json. A
// config.json that Rumor wrote for a family of its own leaves the keys to the run file, too.
//
// A tokenizer.json in the folder is taken for data.kind = "text" unless data.tokens names another.
//
// A GPT's context is part of its weights. That of a Llama stays model.context, up to what its weights were made for.
// Errors: those of the file; Errc::usage where model.context is more than that.
Result<void> adopt_weights_folder(RunConfig& config);

}  // namespace rumor
