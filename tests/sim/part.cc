// RUMOR_SIM_PART=K/N runs every N-th case only, from the K-th: a sanitizer makes the simulator slow, so tools/test runs
// another sixteenth of the cases there with each commit (K from 1). Without the variable all cases run.
#include <boost/test/tree/traverse.hpp>
#include <boost/test/tree/visitor.hpp>
#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <cstdlib>

namespace {

namespace tests = boost::unit_test;

class OthersOff : public tests::test_tree_visitor {
 public:
  OthersOff(unsigned part, unsigned parts) : part_(part), parts_(parts) {}
  void visit(const tests::test_case& one) override {
    if (++count_ % parts_ != part_ % parts_)
      tests::framework::get<tests::test_case>(one.p_id).p_run_status.value = tests::test_unit::RS_DISABLED;
  }

 private:
  unsigned part_, parts_, count_ = 0;
};

struct ChosenPart {
  void setup() {
    unsigned part = 1, parts = 1;
    const char* given = std::getenv("RUMOR_SIM_PART");
    if (given == nullptr) return;
    BOOST_REQUIRE(std::sscanf(given, "%u/%u", &part, &parts) == 2 && parts > 0);
    OthersOff others(part, parts);
    tests::traverse_test_tree(tests::framework::master_test_suite().p_id, others, true);
  }
};

BOOST_TEST_GLOBAL_FIXTURE(ChosenPart);

}  // namespace
