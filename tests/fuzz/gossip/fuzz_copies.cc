// Two links send arbitrary frames to a peer that averages with its neighbours: protocol_driver.h.
#include "tests/fuzz/gossip/protocol_driver.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(copies) {
  rumor::gossip::test::Driver driver(rumor::gossip::test::DriverKind::copies);
  rumor::ByteReader in({data, size});
  driver.run(in);
  return 0;
}
