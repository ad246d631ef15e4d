#include "tools/serve/tier_report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/text.h"
#include "tools/serve/views.h"

namespace rumor::tools {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array thresholds = {0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8};

// The answers of one tier to `rows` samples.
void add_answers(const Tier::Computed& made, std::span<const std::uint8_t> label, std::uint32_t classes,
                 ExitFindings::Tier& findings) {
  for (std::size_t row = 0; row < label.size(); ++row) {
    const auto probability = std::span(made.probability).subspan(row * classes, classes);
    findings.entropy.push_back(normalised_entropy(probability));
    findings.right.push_back(best_class(probability) == label[row]);
  }
}

std::string percent(double share, int width) {
  const std::string text = fixed(100 * share, 2) + " %";
  return std::string(static_cast<std::size_t>(std::max(width - static_cast<int>(text.size()), 0)), ' ') + text;
}

std::string line_of(const ExitFindings& findings, double exit_below) {
  const ExitOutcome outcome = outcome_of(findings, exit_below);
  std::string text = "  " + fixed(exit_below, 2);
  for (const ExitOutcome::Tier& tier : outcome.tiers) text += percent(tier.leaves, 12);
  return text + percent(outcome.right, 14) + str("  ", fixed(outcome.bytes_per_sample, 0), " B\n");
}

Json json_of(const ExitFindings& findings, double exit_below) {
  const ExitOutcome outcome = outcome_of(findings, exit_below);
  Json tiers = Json::array();
  for (std::size_t i = 0; i < outcome.tiers.size(); ++i)
    tiers.push_back({{"tier", i + 1},
                     {"accuracy_alone", outcome.tiers[i].alone},
                     {"leaves", outcome.tiers[i].leaves},
                     {"accuracy", outcome.tiers[i].right_of_these},
                     {"feature_bytes", findings.tiers[i].feature_bytes}});
  return {{"exit_below", exit_below},
          {"tiers", tiers},
          {"accuracy", outcome.right},
          {"bytes_per_sample", outcome.bytes_per_sample}};
}

}  // namespace

Result<ExitFindings> find_exits(std::vector<Tier>& tiers, const models::DataSet& data,
                                compress::BorderNumbers numbers, const ReportProgress& progress) {
  constexpr std::uint32_t block = 100;
  const std::uint32_t samples = data.test_rows();
  if (samples == 0) return Error{Errc::usage, "these data have no test set to report on"};
  ExitFindings findings;
  for (const Tier& tier : tiers)
    findings.tiers.push_back(
        {{}, {}, tier.is_last() ? 0 : compress::border_bytes(numbers, 1, tier.features())});
  models::BatchMemory memory;
  for (std::uint32_t first = 0; first < samples; first += block) {
    if (!progress(first, samples)) return Error{Errc::io, "stopped before the end of the test set"};
    const std::uint32_t rows = std::min(block, samples - first);
    const models::Batch batch = data.test_batch(first, rows, memory);
    std::vector<float> input(batch.x.begin(), batch.x.end());
    for (std::size_t i = 0; i < tiers.size(); ++i) {
      Tier::Computed made = tiers[i].compute(input, rows);
      add_answers(made, batch.label, tiers[i].classes(), findings.tiers[i]);
      if (tiers[i].is_last()) break;
      Bytes coded;
      compress::encode_border(numbers, tiers[i].features(), made.features, coded);
      input = std::move(made.features);
      if (auto read = compress::decode_border(numbers, tiers[i].features(), coded, input); !read) return read.error();
    }
  }
  return findings;
}

std::string report_text(const ExitFindings& findings, const models::DataSet& data, double exit_below) {
  const ExitOutcome outcome = outcome_of(findings, exit_below);
  std::string text = str(findings.samples(), " test rows of ", data.name, "; an exit is sure below ",
                         fixed(exit_below, 2), "\n\n  tier  right alone  leave here  right of these  features\n");
  for (std::size_t i = 0; i < outcome.tiers.size(); ++i) {
    const ExitOutcome::Tier& tier = outcome.tiers[i];
    text += str("  ", i + 1, "   ") + percent(tier.alone, 13) + percent(tier.leaves, 12) +
            percent(tier.right_of_these, 16);
    const std::size_t bytes = findings.tiers[i].feature_bytes;
    text += bytes > 0 ? str("  ", bytes, " B\n") : "\n";
  }
  text += str("\n  together ", fixed(100 * outcome.right, 2), " % right; ", fixed(outcome.bytes_per_sample, 0),
              " B of features sent for each row, which has ", data.inputs, " B as bytes, ", 4 * data.inputs,
              " B as f32\n\n  below");
  for (std::size_t i = 0; i < outcome.tiers.size(); ++i) text += str("   leave at ", i + 1);
  text += "         right  sent for each row\n";
  for (const double threshold : thresholds) text += line_of(findings, threshold);
  return text + str("\nFor `rumor serve --stage 1` with values from 0 to 255: --mean ", data.mean, " --scale ",
                    data.scale, "\n");
}

std::string report_json(const ExitFindings& findings, const models::DataSet& data, double exit_below) {
  Json json = json_of(findings, exit_below);
  json["samples"] = findings.samples();
  json["row_bytes"] = data.inputs;
  json["mean"] = data.mean;
  json["scale"] = data.scale;
  for (const double threshold : thresholds) json["thresholds"].push_back(json_of(findings, threshold));
  return json.dump(2) + "\n";
}

}  // namespace rumor::tools
