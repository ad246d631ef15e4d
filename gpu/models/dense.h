// DeviceDense: the dense layers of models/layers/dense.h on a GPU, with ReLU between them and softmax cross-entropy at
// the end. It is the whole of an MLP, and the head of a convolutional network.
//
// Thread: one caller at a time. Memory, device, for each row of the largest batch seen: a float per unit, and two more
// per unit of the widest layer; and the scratch of products (gpu/device/model_table.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/device/products.h"
#include "models/families/model.h"

namespace rumor::gpu {

class DeviceDense {
 public:
  // The layers' weights [out][in] and biases [out] are the last tensors of `layout`. Refers to `gpu`.
  DeviceDense(const Gpu& gpu, const ParamLayout& layout, std::vector<std::uint32_t> widths, Precision precision);

  std::uint32_t inputs() const { return widths_.front(); }
  std::uint32_t classes() const { return widths_.back(); }
  std::size_t memory_bytes() const;

  // Makes room for forward() of `rows` rows. Errors: Errc::limit.
  Result<void> make_room(std::uint32_t rows);
  // Sends the labels for compare(), which divides by all_rows. Requires: room for as many rows.
  void send(std::span<const std::uint8_t> label, std::uint32_t all_rows);
  // x: device, [rows, inputs()], read until the last call about these rows. Requires: room for them.
  void forward(const float* params, const float* x, std::uint32_t rows);
  // For the rows of the last forward(), whose labels were sent: stores the sum of their losses divided by all_rows, and
  // its gradient for backward().
  void compare();
  // Overwrites the gradients of weights and biases. x_change [rows, inputs()]: d loss / d x, or null.
  void backward(const float* params, float* gradient, float* x_change);
  // The first error of a product since the last call.
  Result<void> outcome() { return products_.outcome(); }
  // The loss that compare() stored. Waits. Errors: Errc::io.
  Result<float> loss();
  // The output of the last layer, [rows, classes()], on the host. Waits. Errors: Errc::io; those of a product.
  Result<std::vector<float>> outputs();

 private:
  struct Layer {
    std::uint32_t in = 0, out = 0;
    std::uint32_t weight = 0, bias = 0;  // positions in the parameters: [out][in], [out]
    DeviceArray<float> activation;       // [rows][out]: after ReLU, except in the last layer
  };

  // The input of layer i, [rows][in].
  const float* input_of(std::size_t i) const { return i == 0 ? x_ : layers_[i - 1].activation.data(); }

  const Gpu* gpu_;
  std::vector<std::uint32_t> widths_;
  Products products_;
  std::vector<Layer> layers_;
  const float* x_ = nullptr;
  std::uint32_t rows_ = 0, rows_max_ = 0;     // of the last forward(); that there is room for
  std::uint32_t all_rows_ = 0;                // of the last send()
  DeviceArray<float> change_, change_below_;  // d loss / d (a layer's sums): [rows][out]
  DeviceArray<float> partial_;                // of sums over rows
  DeviceArray<std::uint16_t> label_;
  DeviceArray<float> row_loss_;
  DeviceArray<double> total_loss_;
};

// Accumulates loss and accuracy over rows, from the outputs of some rows at a time.
class Tally {
 public:
  // logits: [labels, classes].
  void add(std::span<const float> logits, std::span<const std::uint8_t> label);
  models::Evaluation evaluation() const;

 private:
  double loss_ = 0;
  std::uint64_t rows_ = 0, right_ = 0;
  std::vector<double> exponentials_;  // of one row
};

// logits [rows, classes] -> the probability of each class.
void probabilities(std::span<const float> logits, std::uint32_t classes, std::span<float> out);

}  // namespace rumor::gpu
