// Pooling, one picture at a time: the largest of each 2 x 2 window (nn.MaxPool2d(2)), and the mean over all
// pixels (nn.AdaptiveAvgPool2d(1)).
//
// Thread: pure functions.
#pragma once

#include "models/layers/picture.h"

namespace rumor::models {

// An odd last row or column is left out. Requires: height and width >= 2.
PictureShape max_pooled(PictureShape input);
// x [height][width][channels] -> y [height / 2][width / 2][channels]
void max_pool(PictureShape input, const float* x, float* y);
// change_x = d loss / d x: the change of y goes to the largest value of its window, the first among equal values.
void max_pool_backward(PictureShape input, const float* x, const float* change_y, float* change_x);

// x [height][width][channels] -> y [channels]
void average_pool(PictureShape input, const float* x, float* y);
// change_x[p][c] = change_y[c] / pixels
void average_pool_backward(PictureShape input, const float* change_y, float* change_x);

}  // namespace rumor::models
