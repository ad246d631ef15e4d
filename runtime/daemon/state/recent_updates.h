// RecentUpdates: the newest own updates, for who asks what compression does here (`rumor stats HOST:PORT`).
//
// Thread: one owner. What capture() returns may be called on any other thread, at any time: payloads never change.
// Memory: 64 payloads and 2 MiB of them at most, or one that is larger; they are shared with the log.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "runtime/base/bytes.h"

namespace rumor::daemon {

class RecentUpdates {
 public:
  // `head`: what a capture of this run begins with (runtime/replica/capture.h).
  void open(Bytes head) { head_ = std::make_shared<const Bytes>(std::move(head)); }
  void add(std::shared_ptr<const Bytes> payload);
  // Makes the capture file of what there is now. Requires: open().
  std::function<std::string()> capture() const;

 private:
  std::shared_ptr<const Bytes> head_;
  std::deque<std::shared_ptr<const Bytes>> payloads_;  // newest last
  std::size_t bytes_ = 0;
};

}  // namespace rumor::daemon
