#include <algorithm>

#include "models/kernels/portable_math.h"
#include "models/optimizers/optimizer.h"

namespace rumor::models {

double Schedule::factor(double progress) const {
  const double at = progress > 0 ? std::min(progress, 1.0) : 0;  // a NaN counts as the start
  if (at < warmup) return floor + (1 - floor) * (at / warmup);
  if (warmup >= 1) return 1;
  return floor + (1 - floor) * (0.5 * (1 + portable_cos_pi((at - warmup) / (1 - warmup))));
}

}  // namespace rumor::models
