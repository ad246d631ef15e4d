// A peer of the same stage and one of the next send arbitrary frames to a peer of a pipeline: protocol_driver.h.
#include "tests/fuzz/gossip/protocol_driver.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(stages) {
  rumor::gossip::test::Driver driver(rumor::gossip::test::DriverKind::stage);
  rumor::ByteReader in({data, size});
  driver.run(in);
  return 0;
}
