// The identity of training data: who computes with equal hashes computes with equal rows.
//
// Thread: plain function. Reads all of the data once: some 0.5 to 2 GB a second.
#pragma once

#include "models/data/dataset.h"
#include "runtime/base/sha256.h"

namespace rumor::models {

// SHA-256 over sizes and hashes of the training rows; the test set does not count. Tokens count by their numbers,
// however wide the file has them.
Hash256 training_data_hash(const DataSet& data);

}  // namespace rumor::models
