// PlacedArrays: arrays of numbers that are allocated and freed together, in one piece of device memory.
//
// Thread: one owner.
#pragma once

#include <cstddef>
#include <vector>

#include "gpu/device/device.h"

namespace rumor::gpu {

class PlacedArrays {
 public:
  // make_room() sets `begin`, which must live until then.
  void add(float*& begin, std::size_t floats) { place({.floats = &begin}, floats); }
  // Bfloat16 numbers if `bf16`, otherwise floats.
  void add(Numbers& begin, bool bf16, std::size_t count) {
    place({.numbers = &begin, .bf16 = bf16}, bf16 ? (count + 1) / 2 : count);
  }
  // Makes room for all arrays in `memory`, as DeviceArray::make_room(). The arrays move only if this succeeds. Errors:
  // Errc::limit.
  Result<void> make_room(const Gpu& gpu, DeviceArray<float>& memory, const char* what) const {
    if (auto room = memory.make_room(gpu, all_, what); !room) return room;
    for (const Array& array : arrays_) {
      float* const begin = memory.data() + array.at;
      if (array.floats != nullptr)
        *array.floats = begin;
      else
        *array.numbers = array.bf16 ? Numbers(reinterpret_cast<Bf16*>(begin)) : Numbers(begin);
    }
    return {};
  }

 private:
  static constexpr std::size_t line = 64;  // each array begins at a multiple of 64 floats
  struct Array {
    float** floats = nullptr;
    Numbers* numbers = nullptr;
    bool bf16 = false;
    std::size_t at = 0;
  };
  void place(Array array, std::size_t floats) {
    array.at = all_;
    arrays_.push_back(array);
    all_ += (floats + line - 1) / line * line;
  }
  std::vector<Array> arrays_;
  std::size_t all_ = 0;
};

}  // namespace rumor::gpu
