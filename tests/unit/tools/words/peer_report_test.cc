// A figure is one row of a table: it arrives in JSON, metrics, page, terminal and curves. And what `rumor status` and
// `rumor top` make of answers, honest or not.
#include "tools/words/peer_report.h"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/unit/contains.h"

namespace rumor::tools {
namespace {

using nlohmann::json;
using rumor::test::contains;

struct Audit {
  std::uint64_t checked = 1234567;
};

struct Stage {
  std::string name;
  std::uint64_t sent = 0;
};

// The only lines that know of these figures.
constexpr FigureRow<Audit> audit_rows[] = {
    figure<&Audit::checked>("checked")
        .shown("checked", Form::count, 9)
        .counter("rumor_audit_checked_total", "Updates checked.")
        .curve("checked", "audit/checked"),
};
constexpr FigureRow<Stage> stage_rows[] = {
    figure<&Stage::name>("name").shown("stage", Form::text, 8),
    figure<&Stage::sent>("sent_bytes")
        .shown("sent", Form::bytes, 8)
        .gauge("rumor_stage_sent_bytes", "Bytes sent by each stage."),
};

FigureSheet sheet_of(const Audit& audit, const std::vector<Stage>& stages) {
  FigureSheet sheet = status_figures({});
  sheet.add({.object = "audit", .title = "audit"}, audit_rows, audit);
  sheet.add_list({.object = "audit.stages", .title = "Stages", .key = "stage"}, stage_rows, stages);
  return sheet;
}

PeerReport parsed(const std::string& body) {
  auto report = PeerReport::parse(body, "127.0.0.1:1");
  BOOST_REQUIRE(report.ok());
  return *report;
}

std::size_t longest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
  return longest;
}

NodeStatus honest() {
  NodeStatus s;
  s.run_name = "synthetic";
  s.run_id = std::string(32, 'a');
  s.node_id = std::string(64, 'b');
  s.phase = "training";
  s.samples = 300, s.samples_planned = 1000, s.params = 1000;
  s.training.loss = 0.5, s.training.accuracy = 0.875;
  s.training.steps = 20;
  s.traffic.sent_bytes = 2'000'000;
  s.limit = {"pace", "The pace of the run file: a step at most every 20 ms, and steps fill 38 % of the time.", 0.38};
  s.peers.resize(2);
  s.peers[0].address = "127.0.0.1:4711";
  s.peers[0].round_trip = 1500us;
  return s;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(peer_report)

BOOST_AUTO_TEST_CASE(a_figure_is_one_row_and_arrives_everywhere) {
  const FigureSheet sheet = sheet_of({}, {{"first", 2'000'000}});
  json status = json::parse(daemon::figures_json(sheet));
  BOOST_TEST(status["audit"]["checked"] == 1234567);
  BOOST_TEST(status["audit"]["stages"][0]["sent_bytes"] == 2'000'000);

  const std::string metrics = daemon::figures_metrics(sheet);
  BOOST_TEST(contains(metrics, "# HELP rumor_audit_checked_total Updates checked.\n"
                               "# TYPE rumor_audit_checked_total counter\nrumor_audit_checked_total 1234567\n"));
  BOOST_TEST(contains(metrics, "rumor_stage_sent_bytes{stage=\"first\"} 2000000\n"));

  json page = json::parse(daemon::figures_description(sheet));
  const json list = page.back(), group = page[page.size() - 2];
  BOOST_TEST((group["object"] == "audit" && group["title"] == "audit" && group["list"] == false));
  BOOST_TEST((group["figures"][0]["member"] == "checked" && group["figures"][0]["form"] == "count"));
  BOOST_TEST((list["object"] == "audit.stages" && list["list"] == true && list["figures"].size() == 2));

  status["run_id"] = status["node_id"] = "x";
  const PeerReport report = parsed(status.dump());
  const std::string text = report.lines(sheet);
  BOOST_TEST(contains(text, "\naudit      checked 1,234,567\n"));
  BOOST_TEST(contains(text, "\nstage        sent\nfirst      2.0 MB\n"), text);
  BOOST_TEST(contains(top_headings(sheet), " checked"));
  BOOST_TEST(contains(report.top_cells(sheet), " 1,234,567"));

  const auto columns = curves_of(sheet, &Figure::column), scalars = curves_of(sheet, &Figure::scalar);
  BOOST_TEST((columns.back().name == "checked" && columns.back().value == 1234567.0));
  BOOST_TEST(scalars.back().name == "audit/checked");
}

BOOST_AUTO_TEST_CASE(an_empty_list_is_described_and_has_no_samples) {
  const FigureSheet sheet = sheet_of({}, {});
  BOOST_TEST(json::parse(daemon::figures_json(sheet))["audit"]["stages"] == json::array());
  BOOST_TEST(!contains(daemon::figures_metrics(sheet), "rumor_stage_sent_bytes"));
  BOOST_TEST(json::parse(daemon::figures_description(sheet)).back()["figures"].size() == 2);
}

BOOST_AUTO_TEST_CASE(a_status_fits_a_terminal) {
  const FigureSheet sheet = daemon::described_figures();
  NodeStatus s = honest();
  const PeerReport first = parsed(daemon::status_json(s));
  const std::string text = first.lines(sheet);
  BOOST_TEST(text.starts_with("synthetic: training, peer bbbbbbbbbbbbbbbb in run aaaaaaaaaaaaaaaa\n\n"));
  for (const char* part : {"\nlimit      The pace of the run file", "done 30.0 %", "loss 0.500", "accuracy 87.5 %",
                           "neighbours 2", "sent 2.0 MB, received 0 B", "\n00000000 127.0.0.1:4711 ", " 1.5 ms "})
    BOOST_TEST(contains(text, part), part << " is missing in\n" << text);
  BOOST_TEST(longest_line(text) <= 80u);
  BOOST_TEST(!contains(text, "refused"));  // there was no fault
  BOOST_TEST(contains(first.top_cells(sheet), " training "));
  BOOST_TEST(longest_line(std::string(20, ' ') + top_headings(sheet)) <= 80u);

  s.traffic.sent_bytes += 500'000;
  const PeerReport second = parsed(daemon::status_json(s));
  BOOST_TEST(contains(second.lines(sheet, &first, 0.5), "sent 2.5 MB (1.0 MB/s), received 0 B (0 B/s)"));
  BOOST_TEST(contains(second.top_cells(sheet, &first, 0.5), " 1.0 MB/s"));
  BOOST_TEST(!contains(first.lines(sheet, &second, 0.5), "sent 2.0 MB ("));  // the peer started anew
}

BOOST_AUTO_TEST_CASE(nothing_in_an_answer_is_trusted) {
  const FigureSheet sheet = daemon::described_figures();
  for (const char* body : {"", "[]", "17", "{}", "{\"run_id\":1,\"node_id\":2}", "{\"run_id\":\"a\"}"})
    BOOST_TEST(!PeerReport::parse(body, "127.0.0.1:1").ok(), body);
  const PeerReport strange = parsed(
      R"({"run":"\u001b[31mred","run_id":"a","node_id":"b","phase":3,"samples":"many","loss":1e300,"limit":[1],
          "peers":[17,{"node_id":{},"address":"\u0007bell"}],"traffic":null,"compression":{"staleness":7}})");
  const std::string text = strange.lines(sheet);
  BOOST_TEST(text.starts_with("[31mred: , peer b in run a\n"));
  BOOST_TEST(text.find_first_of("\x1b\x07") == std::string::npos);
  BOOST_TEST(longest_line(text) <= 80u);
  BOOST_TEST(!strange.number("limit.kind"));
  BOOST_TEST(longest_line(strange.top_cells(sheet)) <= 60u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::tools
