// View: the weights that a trainer computes with: floats that follow the replica's integers.
//
// Thread: the protocol thread calls all of these while the trainer's memory is its own (runtime/training/trainer.h);
// arrived() also while a step is computed.
#pragma once

#include <memory>

#include "compress/payload/apply.h"
#include "runtime/base/bytes.h"
#include "runtime/base/parallel.h"

namespace rumor {

class InFlightView;
class Replica;

class View {
 public:
  virtual ~View() = default;

  // The replica has taken the update in this payload. A view on another device may begin to bring it there, but must
  // not touch anything that a step uses.
  virtual void arrived(const std::shared_ptr<const Bytes>& /*payload*/) {}
  // The view shows every change that the replica took since the last call.
  virtual void follow(Replica& replica) = 0;
  // After follow(). For a step the view shows the expected changes of other peers on top (expect), for an evaluation
  // the weights alone (lift).
  virtual void expect(Replica& replica, InFlightView& in_flight);
  virtual void lift(Replica& replica, InFlightView& in_flight);
  // The floats, or none where they are not in this machine's memory.
  virtual compress::FloatView view() { return {}; }
  // The replica ends and the view goes on: it takes what it needs of it. Nothing else is asked of the replica then.
  virtual void outlive(Replica& /*replica*/) {}
  // Whether the view has the weights' integers, too. Then a step does not wait for those of the replica.
  virtual bool keeps_weights() const { return false; }

  // Threads for passes over all parameters; null: the caller's thread. Must outlive its use.
  virtual void set_parallel(Parallel* parallel) = 0;
  virtual Parallel& parallel() = 0;
};

}  // namespace rumor
