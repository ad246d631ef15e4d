// Chapters 2 and 3 of compress/ADAPT.md for the second decoder: numbers, states and words. Slow and plain on
// purpose.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace rumor::slow {

using Number = std::uint64_t;
using Numbers = std::vector<Number>;

inline constexpr Number scale = Number{1} << 27;
inline constexpr Number cells_max = 32768;

struct Rejected {};

inline void reject_if(bool condition) {
  if (condition) throw Rejected{};
}

// Chapter 2.
inline Number bits(Number value) {
  Number digits = 0;
  for (; value != 0; value /= 2) ++digits;
  return digits;
}

// Chapter 3.
struct State {
  Number x = 0;
  Numbers& words;  // still to come, the next one last

  Number slot() const { return x % scale; }
  void refill() {
    if (x >= Number{1} << 31 || words.empty()) return;
    x = (x << 32) + words.back();
    words.pop_back();
  }
  void pass(Number start, Number size) {
    x = size * (x / scale) + slot() - start;
    refill();
  }
  Number plain(Number bound) const {
    reject_if(x >= bound || !words.empty());
    return x;
  }
  // Number(2^count).
  Number number(Number count) {
    const Number u = scale >> count, value = slot() / u;
    pass(value * u, u);
    return value;
  }
};

struct States {
  Numbers words{};
  State near{.words = words}, far{.words = words};
  bool apart = false;
  static constexpr Number floor = Number{1} << 31;

  States(const std::vector<std::uint8_t>& body, Number count) {
    const std::size_t length = body.size() <= 8 ? body.size() : 5 + (body.size() - 5) % 4;
    for (std::size_t i = 0; i < length; ++i) near.x += Number{body[i]} << (8 * i);
    for (std::size_t at = body.size(); at > length; at -= 4) {
      Number word = 0;
      for (std::size_t i = 0; i < 4; ++i) word += Number{body[at - 4 + i]} << (8 * i);
      words.push_back(word);
    }
    reject_if(near.x >= Number{1} << 63);
    reject_if(!words.empty() && near.x < floor);
    reject_if(length > 0 && body[length - 1] == 0 && !(length == 5 && !words.empty()));
    if (count >= 96) part();
  }
  States(const States&) = delete;
  // The state of the second lane.
  State& second() { return apart ? far : near; }
  void part() {
    const Number length = near.number(5);
    const Number low = near.number(std::min<Number>(length, 16));
    const Number high = length > 16 ? near.number(length - 16) : 0;
    far.x = (Number{1} << length) + (high << 16) + low;
    far.refill();
    reject_if(far.x < floor);
    apart = true;
  }
  void before_step(Number left) {
    if (!apart || left > 17) return;
    apart = false;
    reject_if(near.x < floor);
    if (far.x >> 32 == 1) {
      words.push_back(far.x % (Number{1} << 32));
      return;
    }
    reject_if(!words.empty() || far.x < floor || far.x > floor + 1);
    if (far.x == floor) return;
    near.x -= floor;
    reject_if(near.x >= floor);
  }
};

}  // namespace rumor::slow
