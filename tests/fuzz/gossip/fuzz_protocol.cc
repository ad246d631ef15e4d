// Two links send arbitrary frames to a peer that broadcasts: protocol_driver.h.
#include "tests/fuzz/gossip/protocol_driver.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(protocol) {
  rumor::gossip::test::Driver driver(rumor::gossip::test::DriverKind::broadcast);
  rumor::ByteReader in({data, size});
  driver.run(in);
  return 0;
}
