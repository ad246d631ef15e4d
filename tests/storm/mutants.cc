// Which deliberate bugs the simulator finds, and after how many seeds.
//
//   mutants                       each bug with the seed noted below, which must catch it. CI runs this
//   mutants SEEDS [FIRST [BUG]]   each bug, or one, with the seeds from FIRST (1) on until one catches it, SEEDS at
//                                 most; prints a table and the median
//
// The program links gossip, runtime and runtime/sim; their sources that ask mutant() are compiled with
// -DRUMOR_MUTANTS. A seed catches a bug when it ends in a violation or a failed check. Without a bug the same seed must
// pass (storm_test.cc). Storms of whole nodes that train must catch some of the bugs as well.
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "runtime/base/mutant.h"
#include "runtime/sim/storm/storm.h"
#include "runtime/sim/storm/training_storm.h"
#include "tests/storm/isolated.h"

namespace rumor {
int mutant_number = 0;
}

namespace {

using namespace rumor;

struct Mutant {
  int number;
  std::uint64_t seed;  // one that catches it
  const char* bug;
};

constexpr Mutant mutants[] = {
    {1, 1, "the newest number of a stream is not recognised"},
    {2, 1, "and what is recognised late is applied again"},
    {3, 1, "of what others have, the number after a gap is left out"},
    {4, 1, "every eighth update is applied and not marked"},
    {5, 1, "every sixteenth update does not reach the fingerprint"},
    {6, 28, "every eighth update leaves the digest as it was"},
    {7, 1, "of several updates that wait one is not applied"},
    {8, 16, "a checkpoint is read without its hash"},
    {9, 1, "a snapshot claims one update more than it holds"},
    {10, 3, "the log comes back from the disk under wrong names"},
    {11, 2, "the log has no bound"},
    {12, 4, "the log gives the next update for one it lacks"},
    {13, 1, "updates are pushed to everybody"},
    {14, 96, "some links hear of nothing"},
    {15, 601, "the origin of a stream is not learned later"},
    {16, 7, "what has arrived still counts as missing"},
    {17, 7, "unsubscribing has no effect"},
    {18, 118, "the end of a backlog is not noticed"},
    {19, 17, "what is not there is wanted in vain, without an answer"},
    {20, 1, "streams that are new to us count as held"},
    {21, 1, "a lost link is not taken out of spreading"},
    {22, 1, "the update after an announced one counts as known"},
    {24, 1, "what is missing is counted wrong"},
    {25, 1, "a lost link stays provider"},
    {26, 1, "what was asked of a lost link is asked of nobody else"},
    {27, 191, "unsubscribing is not said"},
    {28, 1, "more is asked for at a time than is allowed"},
    {29, 186, "a silent provider is never replaced"},
    {30, 5, "a single missing update is not asked for"},
    {31, 730, "digests that differ have no consequence"},
    {34, 561, "what a link no longer keeps is forgotten with each vector"},
    {35, 1, "only the beginning of a vector is read"},
    {36, 130, "both of two histories give way to the other"},
    {37, 23, "a refused snapshot stops all pulling"},
    {38, 130, "updates lost to a snapshot are not said"},
    {39, 18, "any number of links is taken"},
    {40, 14, "silent links are never given up"},
    {41, 1, "an address that failed is never dialled again"},
    {42, 8, "two streams get one number on a link"},
    {43, 1, "a restarted process uses its old stream again"},
    {44, 19, "own updates are not applied again over a snapshot"},
    {45, 131, "a cut is given out whose later updates nobody keeps"},
    {46, 31, "a torn record of the log is read all the same"},
    {47, 1, "a restart counts as a second process with its key"},
    {48, 1, "a process that meets itself takes itself for another"},
    {49, 5, "of two processes with one key the first ends"},
};

std::string run_one(int number, std::uint64_t seed) {
  mutant_number = number;
  sim::StormRequest request;
  request.seed = seed;
  const sim::StormReport report = sim::run_storm(request);
  return report.violation ? report.violation->invariant : "";
}

// Bugs that a training storm must catch as well, with one of the first seeds.
constexpr int in_training[] = {1, 4, 5, 9, 20, 25, 43};

std::string run_training(int number) {
  mutant_number = number;
  RunConfig config = parse_run_config(preset_text("synthetic"), "synthetic").value();
  config.model.hidden = {8};
  config.samples = 12'000;
  config.density = 0.02;
  const auto data = models::load_data({"synthetic", "", 1}).value();
  sim::ClusterOptions options;
  options.network = sim::NetworkModel::preset("lan").value();
  options.curve_points = 1;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    sim::StormRequest request;
    request.seed = seed;
    options.nodes = 3 + seed % 4;
    const auto all = sim::run_training_storm(config, data, options, request, "", nullptr);
    if (all.ok() && all->report.violation) return all->report.violation->invariant;
  }
  return "";
}

// Returns what caught it, empty when nothing did.
std::string verdict(const test::Outcome& outcome) {
  if (outcome.ended) return outcome.text;
  return outcome.signal == SIGALRM ? "" : "check";
}

int training() {
  int missed = 0;
  test::Workers workers(2, 600, [&](std::uint64_t number, const test::Outcome& outcome) {
    if (!verdict(outcome).empty()) return;
    ++missed;
    std::printf("mutant %llu lives in training\n", static_cast<unsigned long long>(number));
  });
  for (const int number : in_training)
    workers.start(static_cast<std::uint64_t>(number), [number] { return run_training(number); });
  workers.finish();
  std::printf("%zu of %zu caught while training\n", std::size(in_training) - static_cast<std::size_t>(missed),
              std::size(in_training));
  return missed;
}

int quick() {
  int missed = 0;
  test::Workers workers(2, 600, [&](std::uint64_t at, const test::Outcome& outcome) {
    if (!verdict(outcome).empty()) return;
    ++missed;
    std::printf("mutant %d lives with seed %llu: %s\n", mutants[at].number,
                static_cast<unsigned long long>(mutants[at].seed), mutants[at].bug);
  });
  for (std::size_t m = 0; m < std::size(mutants); ++m)
    workers.start(m, [m] { return run_one(mutants[m].number, mutants[m].seed); });
  workers.finish();
  std::printf("%zu of %zu deliberate bugs caught\n", std::size(mutants) - static_cast<std::size_t>(missed),
              std::size(mutants));
  missed += training();
  return missed == 0 ? 0 : 1;
}

int table(std::uint64_t seeds, std::uint64_t first, int only) {
  std::vector<std::uint64_t> needed;
  std::size_t missed = 0;
  for (const Mutant& mutant : mutants) {
    if (only != 0 && mutant.number != only) continue;
    std::uint64_t caught_by = 0;
    std::string by;
    test::Workers workers(2, 600, [&](std::uint64_t seed, const test::Outcome& outcome) {
      const std::string what = verdict(outcome);
      if (what.empty() || (caught_by != 0 && caught_by < seed)) return;
      caught_by = seed;
      by = what;
    });
    for (std::uint64_t seed = first; seed < first + seeds && caught_by == 0; ++seed)
      workers.start(seed, [&] { return run_one(mutant.number, seed); });
    workers.finish();
    if (caught_by == 0) ++missed;
    needed.push_back(caught_by == 0 ? seeds : caught_by - first + 1);
    std::printf("%3d  %6s seed %-6llu %s\n", mutant.number, caught_by == 0 ? "LIVES" : by.c_str(),
                static_cast<unsigned long long>(caught_by), mutant.bug);
    std::fflush(stdout);
  }
  std::sort(needed.begin(), needed.end());
  std::printf("%zu of %zu caught; seeds needed: median %llu, most %llu\n", needed.size() - missed,
              needed.size(), static_cast<unsigned long long>(needed[needed.size() / 2]),
              static_cast<unsigned long long>(needed.back()));
  return missed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return quick();
  return table(std::strtoull(argv[1], nullptr, 10), argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1,
               argc > 3 ? std::atoi(argv[3]) : 0);
}
