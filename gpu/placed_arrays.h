// PlacedArrays: arrays of floats that come and go together, in one piece of device memory.
//
// Thread: one owner.
#pragma once

#include <cstddef>
#include <vector>

#include "gpu/device.h"

namespace rumor::gpu {

class PlacedArrays {
 public:
  // `begin` is set by make_room(), and must live until then.
  void add(float*& begin, std::size_t floats) {
    arrays_.push_back({&begin, all_});
    all_ += (floats + line - 1) / line * line;
  }
  // Room for all of them in `memory`, as DeviceArray::make_room(); only then they move. Errors: Errc::limit.
  Result<void> make_room(const Gpu& gpu, DeviceArray<float>& memory, const char* what) const {
    if (auto room = memory.make_room(gpu, all_, what); !room) return room;
    for (const Array& array : arrays_) *array.begin = memory.data() + array.at;
    return {};
  }

 private:
  static constexpr std::size_t line = 64;  // each begins at a multiple of so many floats
  struct Array {
    float** begin;
    std::size_t at;
  };
  std::vector<Array> arrays_;
  std::size_t all_ = 0;
};

}  // namespace rumor::gpu
