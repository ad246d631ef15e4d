// A pipeline's contract with the driver that computes: work goes out as an effect, and its result comes back
// as an input. The protocol reads no number of a border: bytes are opaque to it.
//
// Thread: plain values. Memory: bytes are shared, never changed.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "gossip/contract/events.h"
#include "gossip/wire/wire.h"

namespace rumor::gossip {

// One thing to compute. The driver answers with Pipeline::on_made(), or on_unreadable() if the bytes are not
// what a border of these rows has. There is one at a time.
struct Work {
  enum class Kind : std::uint8_t {
    emit,      // the source: draw rows, go forward -> labels and border above; and the rows, for backward
    forward,   // a stage in the middle: from `below` -> labels and border above
    backward,  // from `below` (at the source: its rows) and `change` -> gradient of the border below
    both,      // the last stage: from `below`, forward and backward -> gradient of the border below, loss
  };
  Kind kind = Kind::forward;
  MicroBatchName name;
  std::uint32_t rows = 0;
  std::size_t label_bytes = 0;          // of `below`, which has the labels first
  std::shared_ptr<const Bytes> below;   // null for emit
  std::shared_ptr<const Bytes> change;  // gradient of the border above, for backward
  // backward, both: the gradient of the tensors is added to a step's sum, which begins with it if this is
  // set.
  bool begins_sum = false;
  // The micro-batch counts in the step after the one under way: its gradient belongs to the sum of that one.
  bool ahead = false;
  // The micro-batch was begun during the step before: it is computed with the weights of that one.
  bool stashed_weights = false;
};

// The result of a Work.
struct Made {
  Bytes bytes;             // as Work::Kind says; empty for the backward pass of a source
  Bytes own = {};          // emit: the rows as the driver wants them for backward; no neighbour gets these
  std::uint32_t rows = 0;  // emit; 1 to limits::micro_batch_rows_max
  std::size_t label_bytes = 0;  // emit, forward
  float loss = 0;               // both: mean over the rows
};

// Make a step of the sum, which has the gradients of `micro_batches` micro-batches, each the mean over its
// rows. The weights may change until Pipeline::begin_step(), and at no other time. If micro-batches are ahead,
// the driver keeps a copy of the weights for them, and begin_step() makes their sum that of the step under way.
struct MakeStep {
  std::uint32_t micro_batches = 0;
  std::uint64_t rows = 0;
  float loss = 0;                      // mean over the micro-batches
  std::vector<MicroBatchName> ahead = {};  // begun for the next step
};

using PipelineEffect = std::variant<Send, Close, Note, Work, MakeStep>;
using PipelineOutbox = std::vector<PipelineEffect>;

}  // namespace rumor::gossip
