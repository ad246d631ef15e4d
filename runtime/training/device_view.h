// DeviceView: the shared weights on the GPU of a trainer, and the floats it computes with
// (gpu/compress/device_replica.h): a replica that follows the host's (gpu/README.md, chapter 5).
//
// Updates of others come as payloads, each as soon as it is here (device_arrivals.h) or all together before the next
// step, and are applied in order. The entries of own updates are on the GPU already. Those in flight stay there, with
// the number of their shares that the view shows on top of the weights; where another number is expected, the
// difference is added. All weights are sent only where the changes are not known, or the state was restored.
//
// Bits: the floats are those that Trainer::follow(), and expect() or lift(), give a view on the host.
//
// Several GPUs: integers lie on the first alone; its floats go to the others wherever they changed
// (gpu/models/split_model.h).
//
// Thread: one caller at a time, as runtime/training/trainer.h has it, but for arrived(). Memory, device: 8 bytes a
// parameter, 5 an entry in flight or being applied, and, with several GPUs, 4 more an entry.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/compress/codec.h"
#include "gpu/compress/device_replica.h"
#include "gpu/models/split_model.h"
#include "runtime/exchange/in_flight_view.h"
#include "runtime/replica/replica.h"
#include "runtime/training/device_arrivals.h"

namespace rumor {

class DeviceView {
 public:
  // Refers to all but the layout. `gpu` is the first of those that `model` is on. Errors: Errc::limit.
  static Result<DeviceView> create(const gpu::Gpu& gpu, gpu::SplitModel& model, gpu::DeviceCodec& codec,
                                   ParamLayout layout, int grid_bits);

  // The replica has taken what came as this payload, and will hand it over at the next follow(). Also while a step is
  // computed.
  void arrived(const std::shared_ptr<const Bytes>& payload) { arrivals_.begin(payload); }

  // The next three begin their work, or remember for told() why they could not. They wait only for payloads: once for
  // all of them, and hardly for those that came by arrived().
  // The floats show the replica's weights, and the same on top as before. `made`: the update of the last step, and its
  // payload; where the replica took that update, its entries are on the GPU already.
  void follow(Replica& replica, const gpu::DeviceUpdate& made, BytesView payload);
  // After follow(): the expected changes of others are on top, or nothing is.
  void expect(InFlightView& in_flight);
  void lift(InFlightView& in_flight);

  const gpu::DeviceArray<float>& floats() const { return replica_.floats(); }
  // The error of those three, once; the next follow() sends all weights then. Errors: Errc::io, Errc::limit;
  // Errc::corrupt for a payload that the GPU reads otherwise than the host did.
  Result<void> told();
  // Whether the integers there have the fingerprint that the replica had at the last follow(): a pass over them, and
  // over what lies on top. Errors: Errc::corrupt, they do not; Errc::io, Errc::limit.
  Result<void> verify();

  // On the device.
  std::size_t weight_bytes() const { return replica_.weight_bytes(); }
  std::size_t float_bytes() const { return replica_.float_bytes(); }
  std::size_t entry_bytes() const;

 private:
  // An own update that may be in flight.
  struct Own {
    compress::SharedUpdate update;
    gpu::DeviceUpdate entries;
    std::vector<compress::StepRun> shares;
    std::size_t on = 0, wanted = 0;  // so many peers' shares lie on top of the weights; are to
  };

  DeviceView(gpu::DeviceReplica replica, DeviceArrivals arrivals, const gpu::Gpu& gpu, gpu::SplitModel& model,
             gpu::DeviceCodec& codec, ParamLayout layout);
  Result<void> collect();
  void keep_in_mind(const Result<void>& done);
  Result<void> write_all(Replica& replica);
  Result<void> take_all(std::span<const Taken> changes, const gpu::DeviceUpdate& made, BytesView payload);
  Result<gpu::PlacedEntries> keep_made(const Taken& taken, const gpu::DeviceUpdate& made);
  Result<void> show(std::span<const InFlightView::Expected> expected);
  Result<void> begin_places(std::uint64_t entries);
  Result<void> add(const gpu::PlacedEntries& entries, std::span<const compress::StepRun> runs, std::int32_t factor);
  Result<void> bring_all();
  Result<void> hand_on();
  Own& own_of(const compress::SharedUpdate& update);
  gpu::DeviceUpdate spare();
  void forget_unexpected(std::span<const InFlightView::Expected> expected);

  gpu::DeviceReplica replica_;
  DeviceArrivals arrivals_;
  const gpu::Gpu* gpu_;
  gpu::SplitModel* model_;
  gpu::DeviceCodec* codec_;
  ParamLayout layout_;
  bool all_anew_ = true;
  Result<void> told_;
  std::uint64_t seed_ = 0, fingerprint_ = 0;  // of the replica, as of the last follow()
  gpu::DeviceUpdate arrived_;  // what came as payloads and is not among the arrivals, one behind the other
  gpu::DeviceUpdate bare_;     // one that came without
  std::vector<Own> own_;
  std::vector<gpu::DeviceUpdate> spare_;  // room of own updates that are over
  // With several GPUs: where the floats changed since begin_places(); beyond half of all of them it does not matter.
  gpu::DeviceArray<std::uint32_t> places_;
  std::uint64_t place_count_ = 0;
  bool everywhere_ = false;
};

}  // namespace rumor
