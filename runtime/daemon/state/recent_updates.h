// RecentUpdates: the newest own updates, for `rumor stats HOST:PORT`.
//
// Thread: one owner. The result of capture() may be called on any thread, at any time: payloads never change.
// Memory: at most 64 payloads and 2 MiB, or one that is larger; they are shared with the log.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "runtime/base/bytes.h"

namespace rumor::daemon {

class RecentUpdates {
 public:
  // `head`: the first bytes of a capture of this run (runtime/replica/capture.h).
  void open(Bytes head) { head_ = std::make_shared<const Bytes>(std::move(head)); }
  void add(std::shared_ptr<const Bytes> payload);
  // Returns a function that makes the capture file of the present updates. Requires: open().
  std::function<std::string()> capture() const;

 private:
  std::shared_ptr<const Bytes> head_;
  std::deque<std::shared_ptr<const Bytes>> payloads_;  // newest last
  std::size_t bytes_ = 0;
};

}  // namespace rumor::daemon
