#include "runtime/training/trainer.h"

#include "runtime/exchange/in_flight_view.h"
#include "runtime/replica/replica.h"

namespace rumor {

void Trainer::expect(Replica& replica, InFlightView& in_flight) {
  in_flight.refresh(replica.weights(), view(), parallel());
}

void Trainer::lift(Replica& replica, InFlightView& in_flight) {
  in_flight.lift(replica.weights(), view(), parallel());
}

}  // namespace rumor
