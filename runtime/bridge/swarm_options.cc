// Before the start of a program's peer: its options and its tensors.
#include <unistd.h>

#include <charconv>
#include <functional>
#include <map>
#include <utility>

#include "runtime/base/limits.h"
#include "runtime/base/text.h"
#include "runtime/bridge/swarm.h"
#include "runtime/daemon/state/storage.h"

namespace rumor::bridge {

namespace {

constexpr std::size_t run_file_bytes_max = 1 << 20;
// For a run without a run file: enough for all updates of a flush.
constexpr double flush_bits = 6;

Result<RunConfig> config_of(const std::string& run) {
  if (const std::string_view text = preset_text(run); !text.empty()) return parse_run_config(text, run);
  if (run.find('/') != std::string::npos || run.ends_with(".toml")) {
    const auto text = daemon::read_file(run, run_file_bytes_max);
    if (!text) return text.error();
    return parse_run_config({reinterpret_cast<const char*>(text->data()), text->size()}, run);
  }
  if (run.empty()) return Error{Errc::usage, "a run wants a name, the same for all of its peers"};
  RunConfig config;
  config.name = run;
  config.samples = samples_unbounded;
  config.model.family = Swarm::outside_family;
  config.flush_bits = flush_bits;
  return config;
}

Result<double> number_of(const std::string& name, const std::string& value, double least, double most) {
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || !(number >= least && number <= most))
    return Error{Errc::usage, str("option ", name, " = '", value, "' wants a number from ", least, " to ", most)};
  return number;
}

std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    if (comma > at) parts.push_back(list.substr(at, comma - at));
    at = comma + 1;
  }
  return parts;
}

}  // namespace

Swarm::Swarm(RunConfig config) : home_(getpid()) { options_.config = std::move(config); }

Result<std::unique_ptr<Swarm>> Swarm::create(const std::string& run) {
  auto config = config_of(run);
  if (!config) return config.error();
  return std::unique_ptr<Swarm>(new Swarm(std::move(config).value()));
}

Result<void> Swarm::option(const std::string& name, const std::string& value) {
  RunConfig& config = options_.config;
  const std::map<std::string, std::function<void()>> texts = {
      {"seed", [&] { for (std::string& seed : parts_of(value)) config.seeds.push_back(std::move(seed)); }},
      {"listen", [&] { config.listen = value; }},
      {"status", [&] { config.status = value; }},
      {"state", [&] { options_.state = value; }},
      {"allow", [&] { config.allow = value; }},
      {"token", [&] { config.token = value; }},
      {"frozen", [&] { frozen_ = value; }},
      {"buffers", [&] { training_.buffers_json = value; }},
      {"weights", [&] { takes_weights_ = value == "swarm"; }},
      {"messages", [&] { options_.muted = value == "events"; }},
  };
  const std::map<std::string, std::pair<std::string, std::string>> choices = {{"weights", {"own", "swarm"}},
                                                                              {"messages", {"stderr", "events"}}};
  if (const auto text = texts.find(name); text != texts.end()) {
    if (const auto one = choices.find(name); one != choices.end())
      if (value != one->second.first && value != one->second.second)
        return Error{Errc::usage, str("option ", name, " = '", value, "' wants ", one->second.first, " or ",
                                      one->second.second)};
    if (value.empty()) return Error{Errc::usage, str("option ", name, " is empty")};
    text->second();
    return {};
  }
  struct Number {
    double least, most;
    std::function<void(double)> set;
  };
  const std::map<std::string, Number> numbers = {
      {"until_samples", {1, 1e15, [&](double v) { options_.until_samples = static_cast<std::uint64_t>(v); }}},
      {"steps", {1, 1e15, [&](double v) { steps_ = v; }}},
      {"checkpoint_seconds", {0.1, 1e6, [&](double v) { options_.checkpoint_every = from_seconds(v); }}},
      {"threads", {0, 64, [&](double v) { options_.threads = static_cast<unsigned>(v); }}},
      {"overhead", {1e-4, 1, [&](double v) { overhead_ = v; }}},
      {"quiet", {0, 1, [&](double v) { options_.quiet = v != 0; }}},
  };
  if (const auto number = numbers.find(name); number != numbers.end()) {
    const auto read = number_of(name, value, number->second.least, number->second.most);
    if (!read) return read.error();
    number->second.set(*read);
    return {};
  }
  grid_given_ = grid_given_ || name == "compress.grid_bits";
  density_given_ = density_given_ || name == "compress.density";
  if (name.find('.') != std::string::npos) return override_run_config(config, name + "=" + value);
  std::vector<std::string> known;
  for (const auto& [text, set] : texts) known.push_back(text);
  for (const auto& [text, set] : numbers) known.push_back(text);
  const std::string hint = nearest(name, known);
  return Error{Errc::usage, str("unknown option ", name, hint.empty() ? "" : "; did you mean " + hint + "?",
                                hint.empty() ? "; keys of run files have a section, such as compress.density" : "")};
}

Result<void> Swarm::parameter(TensorInfo info, OutsideTensor memory, std::optional<int> gpu) {
  if (info.name.size() > limits::tensor_name_bytes_max || info.shape.size() > limits::tensor_rank_max)
    return Error{Errc::limit, str("tensor ", info.name.substr(0, 64), " has a name of more than ",
                                  limits::tensor_name_bytes_max, " bytes or more than ", limits::tensor_rank_max,
                                  " dimensions")};
  if (gpu) {
    const auto alone = ParamLayout::create({info});
    if (!alone) return alone.error();
    const std::size_t each = memory.type == OutsideTensor::Type::bf16 ? 2 : 4;
    const auto copy = on_gpus_.add(*gpu, memory.data, alone->params() * each);
    if (!copy) return copy.error();
    memory.data = *copy;
  }
  infos_.push_back(std::move(info));
  tensors_.push_back(memory);
  return {};
}

Result<void> Swarm::local(std::span<std::uint8_t> memory, std::optional<int> gpu) {
  if (gpu) {
    const auto copy = on_gpus_.add(*gpu, memory.data(), memory.size());
    if (!copy) return copy.error();
    memory = {static_cast<std::uint8_t*>(*copy), memory.size()};
  }
  local_.push_back(memory);
  return {};
}

}  // namespace rumor::bridge
