// CnnPlan: the steps of a convolutional network, from the keys of a run file.
//
// Plain (blocks = 0), for each number in `channels`: convolution 3 x 3, GroupNorm (groups > 0), ReLU, and a
// 2 x 2 max pooling after every `pool_every` of them; then the dense head. In PyTorch, for channels = [32,
// 64], groups = 8, pool_every = 1, hidden = [128], pictures of 1 x 28 x 28 and 10 classes:
//
//   nn.Sequential(
//       nn.Conv2d(1, 32, 3, padding=1, bias=False), nn.GroupNorm(8, 32), nn.ReLU(), nn.MaxPool2d(2),
//       nn.Conv2d(32, 64, 3, padding=1, bias=False), nn.GroupNorm(8, 64), nn.ReLU(), nn.MaxPool2d(2),
//       nn.Flatten(), nn.Linear(64 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10))
//
// Convolutions have a bias where no GroupNorm follows. Tensors are named by the place in the Sequential:
// 0.weight, 1.weight, 1.bias, 4.weight, ...
//
// Residual (blocks = n; He et al. 2016): a stem of convolution, GroupNorm and ReLU; then a stage of n blocks
// for each number in `channels`, halved by max pooling before all but the first; then the mean over the
// pixels and the dense head. channels = [16, 32, 64] and hidden = [] give ResNet-8 with blocks = 1, ResNet-20
// with blocks = 3. In PyTorch:
//
//   nn.Sequential(
//       nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.GroupNorm(8, 16), nn.ReLU(),
//       Block(16, 16, 8), nn.MaxPool2d(2), Block(16, 32, 8), nn.MaxPool2d(2), Block(32, 64, 8),
//       nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
//
//   class Block(nn.Module):
//       def __init__(self, i, o, groups):
//           super().__init__()
//           self.conv1, self.norm1 = nn.Conv2d(i, o, 3, padding=1, bias=False), nn.GroupNorm(groups, o)
//           self.conv2, self.norm2 = nn.Conv2d(o, o, 3, padding=1, bias=False), nn.GroupNorm(groups, o)
//       def forward(self, x):
//           y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
//           return F.relu(y + F.pad(x, (0, 0, 0, 0, 0, y.shape[1] - x.shape[1])))
//
// so the shortcut of a block that widens adds zeros for the new channels and has no weights.
//
// Pictures of other sizes (ModelConfig::sizes): the same steps on smaller maps, with the same tensors. The dense head
// of a plain network has its width by the last map of a whole picture, so a smaller one is stretched to its size.
//
// Units of a part (models/families/part.h): each convolution of a plain network, or the stem and each block
// of a residual one, with the steps up to the next; last the head. A border has the picture after a unit's
// last step, as a data set has pictures: planes one after another. The plan of a part begins with the map of
// that picture.
//
// Thread: plain values, immutable once made.
#pragma once

#include <vector>

#include "models/families/model.h"
#include "models/kernels/area_mean.h"
#include "models/layers/conv.h"
#include "models/layers/group_norm.h"

namespace rumor::models {

// One step on maps (activations of one picture).
struct CnnStep {
  enum class Kind : std::uint8_t {
    convolution,   // to = convolution(from)
    norm,          // to = norm(from)
    relu,          // to = max(to, 0)
    max_pool,      // to = the largest of each 2 x 2 of from
    average_pool,  // to = the mean over the pixels of from
    add,           // to += from, which may have fewer channels
    stretch,       // to = from in another size, by area mean
  };
  Kind kind = Kind::relu;
  std::uint32_t from = 0, to = 0;  // maps; equal for relu
  std::uint32_t layer = 0;         // of the plan's convolutions, norms or area means
  std::uint32_t tensor = 0;        // of the layout: weight; a bias comes next
  bool has_bias = false;
  // Backward, where d loss / d from begins: steps that follow may have given their share already.
  Start start = Start::zero;
};

struct CnnPlan {
  struct Map {
    PictureShape shape;
    std::size_t at = 0;  // in the memory of one picture
  };
  ModelPart part;
  std::vector<Map>
      maps;  // from the picture, or the border below, to the input of the head, or the border above
  std::vector<CnnStep> steps;
  std::vector<Convolution> convolutions;
  std::vector<GroupNorm> norms;
  std::vector<AreaMean> area_means;
  std::vector<std::size_t> norm_saved_at;  // in the memory of one picture, of each norm
  std::size_t floats = 0;                  // memory of one picture
  std::vector<TensorInfo> tensors;         // of all these steps, then of the head
  std::uint32_t body_tensors = 0;          // of the steps
  std::vector<std::uint32_t> head;         // widths of the dense layers; empty without the last unit
};

// `size`: one of config.sizes, or 0 for whole pictures; the tensors are the same. Errors: Errc::usage, naming the key
// and a valid value.
Result<CnnPlan> plan_cnn(const ModelConfig& config, std::uint32_t size = 0);

}  // namespace rumor::models
