// A replica of the middle stage with two neighbours on either side that send anything, and work that succeeds
// or not.
//
// Input: a list of steps. Low three bits of the first byte: 0 to 3: a frame on that link (u16 length, bytes);
// 4: the work under way is done, or, by the next bit, unreadable; 5: the step that was asked for is done; 6:
// time passes, a second times the other bits; 7: the link of the next two bits is lost, and another one comes
// in its place. The replica must keep its invariants, ask for one thing at a time, and close a link with a
// reason. Every input is played without and with overlap of steps.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <set>
#include <utility>

#include "gossip/pipeline/pipeline.h"
#include "runtime/base/bytes.h"
#include "runtime/base/limits.h"
#include "tests/fuzz/target.h"

namespace rumor::gossip::test {
namespace {

class PipelineDriver {
 public:
  explicit PipelineDriver(bool overlap) : one_(options(2, overlap), Prng(1)) {
    act([&] { one_.begin_step(now_, out_); });
    for (std::size_t i = 0; i < 4; ++i) greet(i);
  }

  void run(ByteReader& in) {
    for (int step = 0; step < 400 && in.remaining() > 0; ++step) {
      const std::uint8_t op = in.u8();
      const std::size_t rest = op >> 3;
      if ((op & 7) < 4) {
        give(op & 7, in.raw(std::min<std::size_t>(in.u16(), in.remaining())));
      } else if ((op & 7) == 4) {
        finish_work((rest & 1) != 0);
      } else if ((op & 7) == 5) {
        if (std::exchange(steps_, false)) act([&] { one_.begin_step(now_, out_); });
      } else if ((op & 7) == 6) {
        now_ += 1s * static_cast<int>(rest);
        act([&] { one_.on_time(now_, out_); });
      } else {
        act([&] { one_.on_unlinked(links_[rest & 3], now_, out_); });
        greet(rest & 3);
      }
    }
  }

 private:
  static PipelineOptions options(std::uint32_t stage, bool overlap = false) {
    PipelineOptions made;
    made.self.pipeline.bytes.fill(1);
    made.self.stage = stage;
    made.self.stages = 3;
    made.micro_batches = 3;
    made.overlap = overlap;
    return made;
  }

  // Links 0 and 1 are below, 2 and 3 above.
  void greet(std::size_t which) {
    links_[which] = LinkId{++links_made_};
    act([&] { one_.on_linked(links_[which], out_); });
    give(which, encode(options(which < 2 ? 1 : 3).self));
    if (which >= 2) give(which, encode(Credit{8}));
  }

  void give(std::size_t which, BytesView bytes) {
    const auto frame = decode(bytes);
    if (frame) act([&] { one_.on_frame(links_[which], *frame, now_, out_); });
  }

  void finish_work(bool unreadable) {
    if (!work_) return;
    const Work work = *work_;
    work_.reset();
    if (unreadable) {
      // The bytes of work that was done once can be read.
      if (readable_.insert({work.name, work.kind}).second)
        return act([&] { one_.on_unreadable(now_, out_); });
    }
    readable_.insert({work.name, work.kind});
    Made made{.bytes = *work.below, .label_bytes = work.label_bytes};
    if (work.kind == Work::Kind::backward) made.bytes = *work.change;
    act([&] { one_.on_made(std::move(made), now_, out_); });
  }

  template <class Act>
  void act(Act&& input) {
    input();
    one_.check_invariants();
    for (const PipelineEffect& effect : out_) {
      if (const auto* close = std::get_if<Close>(&effect); close && close->reason.empty()) std::abort();
      if (const auto* send = std::get_if<Send>(&effect); send && send->frame.size() > limits::frame_bytes_max)
        std::abort();
      if (const auto* work = std::get_if<Work>(&effect)) {
        if (work_ || steps_) std::abort();
        work_ = *work;
      }
      if (std::holds_alternative<MakeStep>(effect)) {
        if (work_ || steps_) std::abort();
        steps_ = true;
      }
    }
    out_.clear();
  }

  Pipeline one_;
  PipelineOutbox out_;
  TimePoint now_{1s};
  std::array<LinkId, 4> links_{};
  std::uint64_t links_made_ = 0;
  std::optional<Work> work_;
  std::set<std::pair<MicroBatchName, Work::Kind>> readable_;
  bool steps_ = false;
};

}  // namespace
}  // namespace rumor::gossip::test

FUZZ_TARGET(pipeline) {
  for (const bool overlap : {false, true}) {
    rumor::gossip::test::PipelineDriver driver(overlap);
    rumor::ByteReader in({data, size});
    driver.run(in);
  }
  return 0;
}
