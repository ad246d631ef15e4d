// EventQueue: what happens next in virtual time. Equal times come out in the order they went in.
//
// Thread: one owner. Cost: O(log n) a push or pop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/base/time.h"

namespace rumor::sim {

template <class Event>
class EventQueue {
 public:
  void push(TimePoint at, Event event) {
    heap_.push_back({at, pushed_++, std::move(event)});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }

  bool empty() const { return heap_.empty(); }
  TimePoint next() const { return heap_.front().at; }

  // Requires: !empty().
  std::pair<TimePoint, Event> pop() {
    RUMOR_CHECK(!heap_.empty());
    std::pop_heap(heap_.begin(), heap_.end(), later);
    Item item = std::move(heap_.back());
    heap_.pop_back();
    return {item.at, std::move(item.event)};
  }

 private:
  struct Item {
    TimePoint at;
    std::uint64_t order;
    Event event;
  };
  static bool later(const Item& a, const Item& b) { return a.at != b.at ? a.at > b.at : a.order > b.order; }

  std::uint64_t pushed_ = 0;
  std::vector<Item> heap_;
};

}  // namespace rumor::sim
