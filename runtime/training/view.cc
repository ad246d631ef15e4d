#include "runtime/training/view.h"

#include "runtime/exchange/in_flight_view.h"
#include "runtime/replica/replica.h"

namespace rumor {

void View::expect(Replica& replica, InFlightView& in_flight) {
  in_flight.refresh(replica.weights(), view(), parallel());
}

void View::lift(Replica& replica, InFlightView& in_flight) { in_flight.lift(replica.weights(), view(), parallel()); }

}  // namespace rumor
