// rumor peer: one daemon in the foreground.
#include <charconv>
#include <optional>
#include <string_view>

#include "runtime/base/text.h"
#include "tools/commands/run_member.h"
#include "tools/words/stage_list.h"

namespace rumor::tools {

namespace {

struct PartOf {
  std::uint32_t index = 0, count = 0;
};

// "2/4" -> 2 of 4. Nothing for anything else, such as 0/4 and 5/4.
std::optional<PartOf> part_of(const std::string& text) {
  PartOf part;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, part.index);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '/') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, part.count);
  const bool good = second.ec == std::errc() && second.ptr == end && part.index >= 1 && part.index <= part.count;
  return good ? std::optional(part) : std::nullopt;
}

// Empty: the whole data set.
Result<models::Shard> parse_shard(const std::string& text) {
  if (text.empty()) return models::Shard{0, 1};
  if (const auto part = part_of(text)) return models::Shard{part->index - 1, part->count};
  return Error{Errc::usage, str("--shard ", text, " wants I/N with 1 <= I <= N, such as 2/4")};
}

// "cpu" -> none, "cuda" -> the first GPU, "cuda:0,1" -> those of these numbers.
Result<std::vector<int>> parse_device(const std::string& text) {
  if (text == "cpu") return std::vector<int>{};
  if (text == "cuda") return std::vector<int>{0};
  const Error wrong{Errc::usage,
                    str("--device ", text, " wants cpu, cuda, or cuda with numbers of GPUs, such as cuda:0,1")};
  constexpr std::string_view prefix = "cuda:";
  if (text.rfind(prefix, 0) != 0) return wrong;
  std::vector<int> gpus;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data() + prefix.size(); ; ++at) {
    int number = 0;
    const auto read = std::from_chars(at, end, number);
    if (read.ec != std::errc() || number < 0 || (read.ptr != end && *read.ptr != ',')) return wrong;
    gpus.push_back(number);
    at = read.ptr;
    if (at == end) return gpus;
  }
}

}  // namespace

int run_peer_command(const PeerCommand& command) {
  auto config = load_run(command.run);
  if (!config) return fail(config.error());
  auto shard = parse_shard(command.shard);
  if (!shard) return fail(shard.error());
  auto stages = parse_stages(command.stage, config->pipeline.stages);
  if (!stages) return fail(stages.error());
  auto gpus = parse_device(command.device);
  if (!gpus) return fail(gpus.error());
  daemon::PeerOptions options;
  options.config = std::move(config).value();
  if (!command.listen.empty()) options.config.listen = command.listen;
  if (!command.map_port.empty())
    if (auto set = override_run_config(options.config, "network.map_port=" + command.map_port); !set)
      return fail(set.error());
  if (!command.tensorboard.empty()) options.config.tensorboard = command.tensorboard;
  options.shard = *shard;
  if (stages->size() == 1) options.stage = stages->front();
  else options.stages = std::move(stages).value();
  options.stage_auto = command.stage == "auto";
  options.capture = command.capture;
  options.until_samples = command.until_samples;
  options.until_seconds = command.until_seconds;
  options.threads = command.threads;
  options.gpus = std::move(gpus).value();
  return run_member(command, std::move(options));
}

}  // namespace rumor::tools
