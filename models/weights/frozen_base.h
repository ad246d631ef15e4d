// The weights that stay frozen beside adapters (models/families/adapters.h), from any safetensors file or folder of
// weights that start_weights.h reads.
//
// They are kept as floats, as the files have them: they are no part of the replica, so no grid rounds them. Their hash
// is over the values in the model's order. So one base in several forms of files, or of equal values in another type,
// is one base.
//
// Thread: plain functions. Memory: 4 bytes a weight, shared by all models of a process.
#pragma once

#include <memory>
#include <string>

#include "models/data/dataset.h"
#include "models/families/adapters.h"
#include "runtime/base/result.h"

namespace rumor::models {

// The weights of a model of `layout`. Errors: those of read_named_weights().
Result<std::shared_ptr<const FrozenBase>> read_base(const std::string& path, const ParamLayout& layout);

// Reads config.adapter.base from `path`, if `config` has adapters; `data` tells the vocabulary. Errors: those of
// describe_data(), make_model() and plan_adapters(); Errc::usage for an empty path.
Result<void> open_base_of(const std::string& path, const DataConfig& data, ModelConfig& config);

}  // namespace rumor::models
