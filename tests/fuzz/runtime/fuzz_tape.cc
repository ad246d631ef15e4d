// Fuzzes the reader of tapes: what it accepts is written and read again as the same steps.
#include "runtime/audit/tape.h"
#include "runtime/base/check.h"
#include "tests/fuzz/target.h"

using namespace rumor;

FUZZ_TARGET(tape) {
  const auto steps = audit::TapeReader().read({data, size});
  if (!steps) return 0;
  audit::TapeWriter writer;
  for (const auto& step : *steps) writer.add(step.record, step.view);
  const auto again = audit::TapeReader().read(writer.take());
  RUMOR_CHECK(again.ok() && again->size() == steps->size());
  for (std::size_t i = 0; i < steps->size(); ++i) {
    RUMOR_CHECK((*again)[i].record == (*steps)[i].record);
    RUMOR_CHECK((*again)[i].view == (*steps)[i].view);
  }
  return 0;
}
