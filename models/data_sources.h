// Where data sets come from: one function per kind of DataConfig. load_data() is the public way in.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "models/dataset.h"

namespace rumor::models {

// The four files of an MNIST-style set: {train,t10k}-{images-idx3,labels-idx1}-ubyte, each plain or with .gz.
// Errors: as load_data.
Result<std::shared_ptr<const DataSet>> load_idx_data(const std::string& directory);

// 10 classes, 64 inputs, 8,000 training and 2,000 test rows, from the seed alone, in milliseconds.
// Each class is four clouds around random centres that overlap those of other classes, so that no straight
// cut separates them and the best possible accuracy is below 1. After 120,000 samples of plain SGD an MLP
// with two hidden layers of 128 is right on about 93 % of the test rows, a linear model on about 77 %.
std::shared_ptr<const DataSet> make_synthetic(std::uint64_t seed);

}  // namespace rumor::models
