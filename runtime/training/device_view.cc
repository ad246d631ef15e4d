#include "runtime/training/device_view.h"

#include <algorithm>
#include <utility>

#include "compress/payload/recorded.h"
#include "runtime/base/check.h"
#include "runtime/base/memory_bytes.h"

namespace rumor {

DeviceView::DeviceView(gpu::DeviceReplica replica, DeviceArrivals arrivals, const gpu::Gpu& gpu,
                       gpu::SplitModel& model, gpu::DeviceCodec& codec, ParamLayout layout)
    : replica_(std::move(replica)),
      arrivals_(std::move(arrivals)),
      gpu_(&gpu),
      model_(&model),
      codec_(&codec),
      layout_(std::move(layout)) {}

Result<DeviceView> DeviceView::create(const gpu::Gpu& gpu, gpu::SplitModel& model, gpu::DeviceCodec& codec,
                                      ParamLayout layout, int grid_bits) {
  auto replica = gpu::DeviceReplica::create(gpu, layout.params(), grid_bits);
  if (!replica) return replica.error();
  auto arrivals = DeviceArrivals::create(gpu, layout);
  if (!arrivals) return arrivals.error();
  return DeviceView(std::move(replica).value(), std::move(arrivals).value(), gpu, model, codec, std::move(layout));
}

void DeviceView::keep_in_mind(const Result<void>& done) {
  if (done) return;
  all_anew_ = true;
  if (told_) told_ = done;
}

Result<void> DeviceView::told() { return std::exchange(told_, {}); }

// ---- what is to be shown ----

void DeviceView::follow(Replica& replica, const gpu::DeviceUpdate& made, BytesView payload) {
  const auto changes = replica.hand_over();
  seed_ = replica.fingerprinter().seed();
  fingerprint_ = replica.fingerprint();
  keep_in_mind(collect());
  keep_in_mind(changes && !all_anew_ ? take_all(*changes, made, payload) : write_all(replica));
}

// The trainer's stream may read what it was handed last. Who computed has waited for it, so this hardly does.
Result<void> DeviceView::collect() {
  if (auto over = gpu_->wait(); !over) return over;
  return arrivals_.collect();
}

void DeviceView::expect(InFlightView& in_flight) { keep_in_mind(show(in_flight.expected())); }

void DeviceView::lift(InFlightView& in_flight) {
  in_flight.lifted();
  for (Own& own : own_) own.wanted = 0;
  keep_in_mind(bring_all());
}

// Nothing is on top of the weights then.
Result<void> DeviceView::write_all(Replica& replica) {
  for (Own& own : own_) own.on = 0;
  replica_.write(replica.weights());
  all_anew_ = false;
  return model_->follow(floats());
}

// Whose bytes are those of the last step has its entries: a payload has one meaning, and an update one payload.
Result<void> DeviceView::take_all(std::span<const Taken> changes, const gpu::DeviceUpdate& made, BytesView payload) {
  std::uint64_t entries = 0;
  std::vector<BytesView> payloads;
  const auto is_made = [&](const Taken& taken) {
    const BytesView update = compress::update_part(*taken.payload);
    return std::equal(payload.begin(), payload.end(), update.begin(), update.end());
  };
  const auto came = [&](const Taken& taken) { return taken.payload ? arrivals_.find(*taken.payload) : nullptr; };
  for (const Taken& taken : changes) {
    entries += taken.update->index.size();
    if (taken.payload && came(taken) == nullptr && !is_made(taken))
      payloads.push_back(compress::update_part(*taken.payload));
  }
  if (auto begun = begin_places(entries); !begun) return begun;
  const auto counts = codec_->decode_all(payloads, arrived_);
  if (!counts) return counts.error();
  auto count = counts->begin();
  std::uint32_t first = 0;
  for (const Taken& taken : changes) {
    Result<gpu::PlacedEntries> there = gpu::PlacedEntries{};
    if (!taken.payload) {
      const auto sent = bare_.write_entries(*gpu_, *taken.update);
      there = sent ? Result(bare_.placed()) : sent.error();
    } else if (const gpu::DeviceUpdate* decoded = came(taken)) {
      there = decoded->placed();
    } else if (is_made(taken)) {
      there = keep_made(taken, made);
    } else {
      there = arrived_.placed(first, *count);
      first += *count++;
    }
    if (!there) return there.error();
    RUMOR_CHECK(there->count == taken.update->index.size());
    const std::int32_t factor = taken.payload && taken.back ? -1 : 1;
    if (auto added = add(*there, compress::step_runs(layout_, *taken.update), factor); !added) return added;
  }
  return hand_on();
}

// While it is in flight, and at least until somebody says what is.
Result<gpu::PlacedEntries> DeviceView::keep_made(const Taken& taken, const gpu::DeviceUpdate& made) {
  Own own{taken.update, spare(), {}};
  if (auto copied = own.entries.copy_entries(*gpu_, made); !copied) return copied.error();
  own_.push_back(std::move(own));
  return made.placed();
}

// ---- what is expected of others ----

Result<void> DeviceView::show(std::span<const InFlightView::Expected> expected) {
  for (Own& own : own_) own.wanted = 0;
  for (const InFlightView::Expected& one : expected) {
    Own& own = own_of(one.update);
    if (own.entries.count != one.update->index.size())
      if (auto sent = own.entries.write_entries(*gpu_, *one.update); !sent) return sent;
    own.shares.assign(one.shares.begin(), one.shares.end());
    own.wanted = one.peers;
  }
  auto brought = bring_all();
  forget_unexpected(expected);
  return brought;
}

// One that is not there has no entries yet.
DeviceView::Own& DeviceView::own_of(const compress::SharedUpdate& update) {
  const auto at = std::find_if(own_.begin(), own_.end(), [&](const Own& own) { return own.update == update; });
  if (at != own_.end()) return *at;
  own_.push_back({update, spare(), {}});
  return own_.back();
}

gpu::DeviceUpdate DeviceView::spare() {
  if (spare_.empty()) return {};
  gpu::DeviceUpdate room = std::move(spare_.back());
  spare_.pop_back();
  room.clear();
  return room;
}

void DeviceView::forget_unexpected(std::span<const InFlightView::Expected> expected) {
  std::erase_if(own_, [&](Own& own) {
    const bool is_expected = std::any_of(expected.begin(), expected.end(),
                                         [&](const InFlightView::Expected& one) { return one.update == own.update; });
    if (!is_expected) spare_.push_back(std::move(own.entries));
    return !is_expected;
  });
}

// Every own update gets as many shares on top as are wanted.
Result<void> DeviceView::bring_all() {
  std::uint64_t entries = 0;
  for (const Own& own : own_) entries += own.on != own.wanted ? own.entries.count : 0;
  if (auto begun = begin_places(entries); !begun) return begun;
  for (Own& own : own_) {
    const auto more = static_cast<std::int64_t>(own.wanted) - static_cast<std::int64_t>(own.on);
    own.on = own.wanted;
    if (more == 0) continue;
    if (auto added = add(own.entries.placed(), own.shares, static_cast<std::int32_t>(more)); !added) return added;
  }
  return hand_on();
}

// ---- further GPUs ----

Result<void> DeviceView::begin_places(std::uint64_t entries) {
  place_count_ = 0;
  everywhere_ = entries > layout_.params() / 2;
  if (model_->parts() == 1 || everywhere_) return {};
  return places_.make_room(*gpu_, entries, "updates");
}

Result<void> DeviceView::add(const gpu::PlacedEntries& entries, std::span<const compress::StepRun> runs,
                             std::int32_t factor) {
  if (model_->parts() > 1 && !everywhere_) {
    gpu_->table().copy_within(gpu_->device(), places_.data() + place_count_, entries.index,
                              entries.count * sizeof(std::uint32_t));
    place_count_ += entries.count;
  }
  return replica_.add(entries, runs, factor);
}

Result<void> DeviceView::hand_on() {
  return everywhere_ ? model_->follow(floats()) : model_->follow_at(places_, place_count_, floats());
}

// ---- questions ----

Result<void> DeviceView::verify() {
  auto there = replica_.fingerprint(seed_);
  for (const Own& own : own_) {
    if (!there) return there.error();
    const auto on_top =
        replica_.fingerprint_of(own.entries.placed(), own.shares, static_cast<std::int32_t>(own.on), seed_);
    if (!on_top) return on_top.error();
    there = Fingerprinter::minus(*there, *on_top);
  }
  if (!there) return there.error();
  if (*there == fingerprint_) return {};
  return Error{Errc::corrupt,
               "the weights on the GPU are not those of the replica: its memory, or this program, is at fault; start "
               "this peer again, and where that comes back, with --device cpu"};
}

std::size_t DeviceView::entry_bytes() const {
  std::size_t bytes = capacity_bytes(own_, spare_) + arrived_.memory_bytes() + bare_.memory_bytes() +
                      arrivals_.memory_bytes() + replica_.entry_bytes() + places_.bytes();
  for (const Own& own : own_) bytes += own.entries.memory_bytes();
  for (const gpu::DeviceUpdate& room : spare_) bytes += room.memory_bytes();
  return bytes;
}

}  // namespace rumor
