// PictureShape: how the layers of a convolutional network see one picture, [height][width][channels], the
// values of a pixel together. (Data sets and PyTorch have the planes one after another; models/families/cnn.cc turns
// them at both ends.) Vectors run over channels, so that 16 or more of them fill the registers whatever the
// size of the picture.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rumor::models {

struct PictureShape {
  std::uint32_t height = 0, width = 0, channels = 0;

  std::size_t pixels() const { return std::size_t{height} * width; }
  std::size_t size() const { return pixels() * channels; }
};

}  // namespace rumor::models
