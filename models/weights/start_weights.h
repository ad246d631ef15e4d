// Weights from which a run starts instead of its seed, from any safetensors file or checkpoint in shards
// (models/weights/weight_files.h).
//
// Names are matched with the model's. A name may have one of the prefixes of frameworks (transformer., model., module.,
// _orig_mod.) where the model has none, and the other way round. A linear layer of a GPT may be stored outputs first
// ([3 d, d], as in nn.Linear) instead of inputs first as in GPT-2's Conv1D; it is then transposed. Tensors
// that are no parameters (attn.bias, attn.masked_bias, rotary_emb.inv_freq, a tied lm_head.weight) are skipped, and so
// are the exits of stages (exit.1.weight). Any other tensor that the model lacks is an error, since it is a sign of
// another model.
//
// Values are F32, BF16, F16 or F64, each rounded to the nearest point of the weight grid, halves away from zero. So
// equal files are equal weights everywhere.
//
// Thread: plain functions and values. Memory: the weights; files are read block by block.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/data/dataset.h"
#include "models/families/model.h"
#include "models/weights/weight_files.h"
#include "runtime/base/large_vector.h"
#include "runtime/base/result.h"
#include "runtime/base/types.h"

namespace rumor::models {

struct StartWeights {
  LargeVector<std::int32_t> weights;  // on the grid
  Hash256 hash;                       // SHA-256 of the weights, little-endian
  std::string beside;                 // names what the model has beside them; empty: nothing that counts

  // Part of the run id: a hash of both.
  Hash256 identity() const;
};

// The tensors of a layout out of `path`, as WeightFiles opens it. Floats, in layout order. Errors: Errc::not_found,
// Errc::io, Errc::corrupt of the files, also of one that becomes shorter while it is read; Errc::mismatch naming the
// tensor that is missing, of another shape, of a type that is not read, or too many; Errc::limit naming one that holds
// a value that is not finite.
Result<std::vector<float>> read_named_weights(const std::string& path, const ParamLayout& layout);
Result<std::vector<float>> read_named_weights(const WeightFiles& files, const ParamLayout& layout);

// The same on the grid. Errors also: Errc::limit for a value beyond the grid.
Result<std::shared_ptr<const StartWeights>> read_start_weights(const std::string& path,
                                                               const ParamLayout& layout, int grid_bits);

// Start weights of the model that `config` makes for rows of `data`; null if `path` is empty. If `config` has adapters,
// `path` is that of their base (models/weights/frozen_base.h), and they start from config.adapter.start; null if that
// is empty. Errors also: those of make_model() and read_start_adapters().
Result<std::shared_ptr<const StartWeights>> load_start_weights(const std::string& path, ModelConfig config,
                                                               const DataSet& data, int grid_bits);

}  // namespace rumor::models
