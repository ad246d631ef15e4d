// TensorFinder: the offsets of a model's tensors in a layout that came from elsewhere, such as a checkpoint.
//
// Looks tensors up by name and checks their shapes. What is wrong first is remembered, so a family asks for all of its
// tensors and looks at wrong() once. Thread: one owner; refers to the layout.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/param_layout.h"

namespace rumor::models {

class TensorFinder {
 public:
  // Names may be in the layout with `prefix` or without. The layout must outlive this.
  explicit TensorFinder(const ParamLayout& layout, std::string_view prefix = {})
      : layout_(layout), prefix_(prefix) {}

  // Null when there is none.
  const TensorInfo* find(const std::string& name) const;
  // Offset in the parameter vector; 0, and a reason in wrong(), for a tensor that is missing or of another shape.
  std::uint32_t offset(const std::string& name, const std::vector<std::uint32_t>& shape);
  // Notes a reason of the family's own.
  void fail(std::string why);
  // The first reason, naming the tensor; empty: all is well.
  const std::string& wrong() const { return wrong_; }

 private:
  const ParamLayout& layout_;
  std::string_view prefix_;
  std::string wrong_;
};

}  // namespace rumor::models
