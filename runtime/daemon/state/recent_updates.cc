#include "runtime/daemon/state/recent_updates.h"

#include <utility>

#include "runtime/base/check.h"
#include "runtime/replica/capture.h"

namespace rumor::daemon {

namespace {
// Enough for figures.
constexpr std::size_t payloads_max = 64, bytes_max = 2 << 20;
}  // namespace

void RecentUpdates::add(std::shared_ptr<const Bytes> payload) {
  bytes_ += payload->size();
  payloads_.push_back(std::move(payload));
  while (payloads_.size() > payloads_max || (bytes_ > bytes_max && payloads_.size() > 1)) {
    bytes_ -= payloads_.front()->size();
    payloads_.pop_front();
  }
}

std::function<std::string()> RecentUpdates::capture() const {
  RUMOR_CHECK(head_ != nullptr);
  return [head = head_, payloads = payloads_] {
    std::string out(head->begin(), head->end());
    for (const auto& payload : payloads) {
      const Bytes record = encode_capture_record(*payload);
      out.append(record.begin(), record.end());
    }
    return out;
  };
}

}  // namespace rumor::daemon
