// The keys of [audit]: which of them need each other, and which make another run.
#include <boost/test/unit_test.hpp>

#include "runtime/run/run_config.h"
#include "runtime/run/run_identity.h"
#include "tests/unit/contains.h"

using namespace rumor;

BOOST_AUTO_TEST_SUITE(audit_keys)

namespace {
using rumor::test::contains;

std::string refused(const std::string& text) {
  const auto parsed = parse_run_config(text, "run.toml");
  return parsed.ok() ? "" : parsed.error().text;
}
}  // namespace

BOOST_AUTO_TEST_CASE(audits_want_records_and_segments) {
  const auto warning = [](const std::string& text) { return parse_run_config(text, "run.toml").value().warning(); };
  BOOST_TEST(contains(warning("[audit]\nshare = 0.1"), "audit.record"));
  BOOST_TEST(contains(warning("[audit]\nrecord = true\nsegment = 0\nshare = 0.1"), "audit.segment"));
  BOOST_TEST(warning("[audit]\nrecord = true\nshare = 0.1").empty());
  BOOST_TEST(!parse_run_config("[audit]\nshare = 0.9", "run.toml").ok());
  const RunConfig config = parse_run_config("[audit]\nrecord = true", "run.toml").value();
  BOOST_TEST(config.segment_updates(1000) == 16u);
  BOOST_TEST(config.segment_updates(RunConfig::segment_params_max + 1) == 0u);
  const char* const recurrent = "[model]\nfamily = \"lstm\"\n[audit]\nrecord = true";
  BOOST_TEST(parse_run_config(recurrent, "run.toml").value().segment_updates(1000) == 0u);
  BOOST_TEST(RunConfig().segment_updates(1000) == 0u);
}

BOOST_AUTO_TEST_CASE(a_run_may_take_portable_steps_only) {
  BOOST_TEST(contains(refused("[audit]\narithmetic = \"portable\"\n"), "audit.record = true"));
  BOOST_TEST(contains(refused("[audit]\narithmetic = \"gpu\"\n"), "\"any\" or \"portable\""));
  const auto run = [](const std::string& text) {
    const RunConfig config = parse_run_config("[audit]\nrecord = true\n" + text, "run.toml").value();
    return std::pair(config.takes_portable_steps_only(), run_id(config, ParamLayout(), nullptr));
  };
  const auto plain = run(""), any = run("arithmetic = \"any\"\n"), portable = run("arithmetic = \"portable\"\n");
  BOOST_TEST((!plain.first && !any.first && portable.first));
  BOOST_TEST((plain.second == any.second));
  BOOST_TEST((plain.second != portable.second));
}

BOOST_AUTO_TEST_SUITE_END()
