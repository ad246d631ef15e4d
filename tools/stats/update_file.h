// Files of updates for `rumor stats`: successive changes of one model, in safetensors.
//
//   dense    STEP/NAME        F32, BF16, F16 or F64, any shape: the change that one step would add to the weights
//   sparse   STEP/NAME.index  U32, ascending positions in the flattened tensor
//            STEP/NAME.sign   U8, 0 plus and 1 minus
//                             the metadata has the shape of NAME as text like "1024,784"
//
// STEP is a whole number; steps are taken in its order. A tensor that is missing in a step does not change in it. The
// tensors of the layout are in the order in which the header first names them. A tensor with a dimension of 0 has
// nothing to count and is left out. F64 is rounded to the nearest float.
//
// Thread: immutable once read. Memory: holds the file's bytes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compress/payload/update.h"
#include "models/weights/safetensors.h"

namespace rumor::tools {

class UpdateFile {
 public:
  // Errors: those of SafetensorsFile::read; Errc::corrupt for a file of other tensors, of both kinds, of
  // shapes that change, or where a half of a pair is missing. The text names the tensor.
  static Result<UpdateFile> read(const std::string& path);
  static Result<UpdateFile> of(models::SafetensorsFile file);

  const ParamLayout& layout() const { return layout_; }
  bool dense() const { return dense_; }
  std::size_t steps() const { return steps_.size(); }
  // The number the file gives to a step. Requires: step < steps().
  std::uint64_t number(std::size_t step) const { return steps_[step].number; }

  // The change of all parameters; zero where the tensor is missing. Requires: dense(), step < steps(). Errors: those of
  // SafetensorsFile::read.
  Result<std::vector<float>> change(std::size_t step) const;

  // The entries of the file, each of one grid unit, since the file has no sizes.
  // Errors: Errc::corrupt if positions do not ascend or leave the tensor, or a sign is neither 0 nor 1.
  // Requires: !dense(), step < steps().
  Result<compress::SparseUpdate> update(std::size_t step) const;

 private:
  // The entries of one tensor in a step: indices into file_.entries().
  struct Piece {
    std::size_t values = missing;  // or the positions
    std::size_t signs = missing;
  };
  struct Step {
    std::uint64_t number = 0;
    std::vector<Piece> pieces;  // one for each tensor of the layout
  };
  struct Collected;
  static constexpr std::size_t missing = ~std::size_t{0};

  UpdateFile(models::SafetensorsFile file, ParamLayout layout, bool dense, std::vector<Step> steps);
  Result<void> append(const Piece& piece, const TensorInfo& tensor, compress::SparseUpdate& update) const;

  models::SafetensorsFile file_;
  ParamLayout layout_;
  bool dense_ = true;
  std::vector<Step> steps_;
};

}  // namespace rumor::tools
