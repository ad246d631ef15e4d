// Curves, events, and the cause that limits training.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "runtime/daemon/state/event_journal.h"
#include "runtime/daemon/state/rotating_file.h"
#include "runtime/daemon/state/run_history.h"
#include "runtime/daemon/status/bottleneck.h"
#include "runtime/daemon/status/figure_text.h"
#include "tests/unit/scratch_folder.h"

namespace rumor::daemon {
namespace {

using nlohmann::json;

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

NodeStatus training_with(std::size_t neighbours) {
  NodeStatus s;
  s.phase = "training";
  s.peers.resize(neighbours);
  return s;
}

PeerStaleness live(std::uint8_t first_byte, double mean = 0) {
  PeerStaleness peer;
  Bytes id(NodeId::size, 0);
  id[0] = first_byte;
  peer.node = NodeId::from(id);
  peer.mean = mean;
  return peer;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(peer_view)

BOOST_AUTO_TEST_CASE(curves_go_back_to_the_start_in_bounded_memory) {
  RunHistory history;
  NodeStatus s;
  s.params = 100;
  for (int quarter = 0; quarter < 4 * 5000; ++quarter) {
    s.samples = static_cast<std::uint64_t>(quarter);
    s.training.steps = 2 * s.samples;
    s.training.steps_held = s.samples;
    if (quarter > 4000) s.training.loss = 0.5;
    history.observe(quarter / 4.0, s);
    BOOST_TEST(history.size() < 512);
  }
  const json j = json::parse(history.json());
  const std::size_t points = j["seconds"].size();
  BOOST_TEST(points >= 256);
  for (const char* name :
       {"samples", "loss", "train_loss", "accuracy", "sent_bytes", "received_bytes", "dense_bytes", "live_peers"})
    BOOST_TEST(j[name].size() == points, name);
  BOOST_TEST(j["seconds"][0] == 0.0);
  BOOST_TEST(j["seconds"][points - 1].get<double>() > 4950);
  BOOST_TEST(j["spacing_s"] == 16.0);
  for (std::size_t i = 1; i < points; ++i)
    BOOST_TEST(j["seconds"][i].get<double>() - j["seconds"][i - 1].get<double>() == 16.0);
  BOOST_TEST(j["dense_bytes"][1].get<double>() == 400 * j["samples"][1].get<double>());
  BOOST_TEST(j["loss"][0].is_null());
  BOOST_TEST(j["loss"][points - 1] == 0.5);
}

BOOST_AUTO_TEST_CASE(each_event_is_journalled_once) {
  Scratch scratch;
  EventJournal journal;
  BOOST_REQUIRE(journal.open(scratch.path("events")).ok());
  NodeStatus s = training_with(0);
  journal.observe(1, s);
  journal.observe(2, s);
  s.staleness = {live(0x11), live(0x22), live(0x33)};
  s.lost = {live(0x33).node};
  journal.observe(3, s);
  s.staleness = {live(0x22)};
  s.training.loss = 0.25;
  s.training.evaluations = 1;
  s.samples = 640;
  journal.observe(4, s);
  journal.add(5.0625, "log", EventLevel::warning, "a reason of others: \xff \"quoted\"\n");
  const json events = json::parse(journal.json());
  std::string kinds;
  for (const json& event : events) kinds += event["kind"].get<std::string>() + " ";
  BOOST_TEST(kinds == "phase joined joined joined left lost log ");
  BOOST_TEST(events[4]["text"] == "peer 11000000 trains with us no longer");
  BOOST_TEST(events[4]["node_id"].get<std::string>() == live(0x11).node.hex());
  BOOST_TEST(events[5]["node_id"].get<std::string>() == live(0x33).node.hex());
  BOOST_TEST(events[6]["at"] == 5.063);
  BOOST_TEST(events[6]["level"] == "warning");
  std::istringstream lines(content(scratch.path("events")));
  kinds.clear();
  for (std::string line; std::getline(lines, line);) {
    const json event = json::parse(line);
    kinds += event["kind"].get<std::string>() + " ";
    if (event["kind"] == "evaluated") BOOST_TEST((event["loss"] == 0.25 && event["samples"] == 640));
  }
  BOOST_TEST(kinds == "phase joined joined joined left lost evaluated log ");
  for (int i = 0; i < 1000; ++i) journal.add(i, "log", EventLevel::info, std::to_string(i));
  const json newest = json::parse(journal.json());
  BOOST_TEST(newest.size() == 256);
  BOOST_TEST(newest.back()["text"] == "999");
}

BOOST_AUTO_TEST_CASE(a_peer_that_falls_behind_is_told_once_in_five_minutes) {
  EventJournal journal;
  NodeStatus s = training_with(0);
  std::string kinds;
  journal.listen([&](const std::string& line) { kinds += json::parse(line)["kind"].get<std::string>() + " "; });
  for (const auto& [at, kind] : {std::pair(1, "pace"), {2, "slow_peer"}, {3, "link"}, {250, "pace"}, {301, "link"}}) {
    s.limit = {kind, str("the reason at ", at)};
    journal.observe(at, s);
  }
  BOOST_TEST(kinds == "phase behind ");
  s.limit = {"slow_peer", "Updates arrive late."};
  journal.observe(303, s);
  BOOST_TEST(kinds == "phase behind behind ");
  const json events = json::parse(journal.json());
  BOOST_TEST(events[1]["text"] == "the reason at 2");
  BOOST_TEST(events[2]["text"] == "Updates arrive late.");
}

BOOST_AUTO_TEST_CASE(a_log_file_ends_by_itself) {
  Scratch scratch;
  const std::string path = scratch.path("log");
  {
    auto file = RotatingFile::open(path, 100);
    BOOST_REQUIRE(file.ok());
    for (int i = 0; i < 9; ++i)
      BOOST_TEST((*file).append("line " + std::to_string(i) + std::string(33, '.') + "\n").ok());
  }
  BOOST_TEST(scratch.entries() == 5);  // two lines each; the oldest two are in .4
  BOOST_TEST(content(path).substr(0, 6) == "line 8");
  BOOST_TEST(content(path + ".4").substr(0, 6) == "line 0");
  auto again = RotatingFile::open(path, 100);  // goes on where it was
  BOOST_TEST((*again).append("x\n").ok());
  BOOST_TEST(content(path).size() == 42);
  BOOST_TEST((*again).append(std::string(300, 'y')).ok());  // whole, in a file of its own
  BOOST_TEST(content(path).size() == 300);
  BOOST_TEST(content(path + ".4").substr(0, 6) == "line 2");
  BOOST_TEST(!RotatingFile::open(scratch.path("no/such/folder")).ok());
}

BOOST_AUTO_TEST_CASE(what_limits_training_is_named) {
  const auto kind = [](const NodeStatus& s, double compute, double wait, double held, double period = 0) {
    const Limit limit = limit_of(s, compute, {.updates = wait}, held, 10, period);
    BOOST_TEST(limit.text.ends_with("."));
    return limit.kind;
  };
  NodeStatus s = training_with(2);
  BOOST_TEST(kind(s, 0.9, 0, 0) == "compute");
  BOOST_TEST(kind(s, 0.3, 0, 0, 4) == "pace");
  BOOST_TEST(kind(s, 0.9, 0, 0.5) == "link");
  BOOST_TEST(kind(s, 0.3, 0.5, 0.5) == "slow_peer");
  BOOST_TEST(limit_of(s, 0.3, {.links = 0.6}, 0, 10, 0).text.find("waits 60 % of the time for links") !=
             std::string::npos);
  s.density_factor = 0.3;
  BOOST_TEST(kind(s, 0.9, 0, 0) == "link");
  BOOST_TEST(limit_of(s, 0.9, {}, 0, 10, 0).text.find("30 % of their planned entries") != std::string::npos);
  s.density_factor = 1;
  s.rate_factor = 0.5;
  s.staleness = {live(0x11, 3), live(0x22, 40)};
  BOOST_TEST(kind(s, 0.9, 0, 0) == "slow_peer");
  BOOST_TEST(limit_of(s, 0.9, {}, 0, 10, 0).text.find("those of 22000000 40.0") != std::string::npos);
  s.unlike = true;
  BOOST_TEST(limit_of(s, 0.9, {}, 0, 10, 0).text.find("Data of peers are unlike") != std::string::npos);
  BOOST_TEST(kind(training_with(0), 0.9, 0, 0) == "alone");
  for (const char* phase : {"finishing", "finished", "ended"}) {
    s.phase = phase;
    BOOST_TEST(kind(s, 0, 0, 0) == "done");
  }
  s.phase = "catching up";
  BOOST_TEST(kind(s, 0, 0, 0) == "joining");
}

BOOST_AUTO_TEST_CASE(what_limits_a_stage_is_named) {
  NodeStatus s = training_with(2);
  s.stage.stage = 2, s.stage.stages = 3;
  const auto says = [&](double compute, const StepWaits& waits, const char* kind, const char* text) {
    const Limit limit = limit_of(s, compute, waits, 0, 10, 0);
    BOOST_TEST(limit.kind == kind);
    BOOST_TEST(limit.text.starts_with(text), limit.text);
    BOOST_TEST(limit.text.ends_with("."));
  };
  says(0.98, {}, "compute", "This machine: stage 2 computes 98 % of the time here.");
  says(0.5, {.above = 0.4}, "slow_peer",
       "Stage 3 or above, or the way there: stage 2 computes 50 % of the time here and waits 40 % for answers.");
  says(0.3, {.above = 0.1, .link = 0.5}, "link",
       "The link to stage 3: stage 2 computes 30 % of the time here and waits 50 % for answers");
  says(0.3, {.above = 0.2, .below = 0.5}, "slow_peer",
       "Stage 1, or the way there: stage 2 computes 30 % of the time here and waits 50 % for micro-batches.");
  says(0.6, {.above = 0.1, .below = 0.15}, "pace", "No stage alone: stage 2 computes 60 % of the time here, and waits");
  s.waiting_for = "no peer of stage 3 is linked, and steps need one";
  says(0, {}, "slow_peer", "Another stage: no peer of stage 3 is linked");
}

BOOST_AUTO_TEST_CASE(peers_of_the_stage_above_have_rows_in_status_and_metrics) {
  NodeStatus s = training_with(1);
  s.stage.stage = 1, s.stage.stages = 2;
  s.stage.uppers = {{"aa", 30, 2, 10.0, 25.0}, {"bb", 7, 4, 500.0, 20.0}, {"cc", 0, 1, {}, {}}};
  const json stage = json::parse(status_json(s))["stage"];
  BOOST_TEST(stage["uppers"].size() == 3u);
  BOOST_TEST(stage["uppers"][1]["answered"] == 7);
  BOOST_TEST(stage["uppers"][1]["pace_ms"] == 500.0);
  BOOST_TEST(!stage["uppers"][2].contains("pace_ms"));
  BOOST_TEST(stage["in_flight_wanted"] == 3.5);  // the most of all
  const std::string metrics = figures_metrics(status_figures(s));
  for (const char* line : {"rumor_stage_upper_answered_micro_batches_total{node=\"aa\"} 30\n",
                           "rumor_stage_upper_pace_seconds{node=\"bb\"} 0.5\n"})
    BOOST_TEST(metrics.find(line) != std::string::npos, metrics);
  // An ordinary peer has no such figures.
  BOOST_TEST(json::parse(status_json(training_with(1)))["stage"]["uppers"].empty());
}

BOOST_AUTO_TEST_CASE(waits_of_a_stage_are_those_of_the_last_ten_seconds) {
  Bottleneck bottleneck(0);
  NodeStatus s = training_with(2);
  s.stage.stage = 1, s.stage.stages = 3;
  double now = 0;
  const auto run = [&](double seconds, double StageStatus::*wait) {
    for (int i = 0; i < 4 * seconds; ++i, now += 0.25) {
      bottleneck.computed(0.1);
      s.stage.*wait += 0.15;
      s.training.steps += 1;
      bottleneck.judge(now, s);
    }
  };
  run(30, &StageStatus::waited_above);
  BOOST_TEST(s.limit.text == "Stage 2 or above, or the way there: stage 1 computes 40 % of the time here and waits "
                             "60 % for answers.");
  run(11, &StageStatus::waited_link);
  BOOST_TEST(s.limit.kind == "link");
}

BOOST_AUTO_TEST_CASE(only_the_last_ten_seconds_count) {
  Bottleneck bottleneck(0);
  NodeStatus s = training_with(1);
  double now = 0;
  const auto run = [&](double seconds, double compute, std::uint64_t held) {
    for (int i = 0; i < 4 * seconds; ++i, now += 0.25) {
      bottleneck.computed(0.25 * compute);
      s.training.steps += 10;
      s.training.steps_held += held;
      bottleneck.judge(now, s);
    }
  };
  run(60, 0.9, 0);
  BOOST_TEST(s.limit.kind == "compute");
  BOOST_TEST(std::abs(s.limit.compute_share - 0.9) < 0.01);
  run(11, 0.9, 8);
  BOOST_TEST(s.limit.kind == "link");
  BOOST_TEST(s.limit.text.find("80 % of the steps") != std::string::npos);
  run(11, 0.5, 0);
  BOOST_TEST(s.limit.kind == "pace");
  BOOST_TEST(std::abs(s.limit.compute_share - 0.5) < 0.01);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::daemon
