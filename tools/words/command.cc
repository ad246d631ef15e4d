#include "tools/words/command.h"

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "models/weights/frozen_base.h"
#include "models/weights/weights_folder.h"
#include "runtime/base/text.h"

namespace rumor::tools {

namespace {
volatile std::sig_atomic_t signalled = 0;
}

Result<std::string> run_file_text(const RunSource& source) {
  std::string text{preset_text(source.name)};
  if (!text.empty()) return text;
  std::error_code ignored;
  if (std::filesystem::is_regular_file(source.name, ignored)) return read_text_file(source.name);
  std::string known;
  for (const std::string& name : preset_names()) known += (known.empty() ? "" : ", ") + name;
  const std::string hint = nearest(source.name, preset_names());
  return Error{Errc::usage, str("'", source.name, "' is neither a run file nor a preset (", known, ")",
                                hint.empty() ? "" : "; did you mean " + hint + "?")};
}

// Says on stderr how far a text has become tokens, once that has taken two seconds, and then every two seconds.
models::EncodingProgress encoding_progress() {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds pause(2);
  return [next = std::optional<Clock::time_point>(), pause](std::uint64_t bytes, std::uint64_t of_bytes) mutable {
    const auto now = Clock::now();
    if (!next) next = now + pause;
    if (now < *next) return;
    next = now + pause;
    std::fprintf(stderr, "data.tokens: %llu %% of the text has become tokens\n",
                 static_cast<unsigned long long>(100 * bytes / std::max<std::uint64_t>(of_bytes, 1)));
  };
}

// The folder of model.weights decides the model's keys, and its tokenizer the tokens of a text unless data.tokens names
// another. A GPT's context is part of its weights. That of a Llama stays model.context, up to what they were made for.
Result<void> adopt_weights_folder(RunConfig& config) {
  auto folder = models::read_weights_folder(config.weights);
  if (!folder) return folder.error();
  if (folder->has_adapters_alone)
    return Error{Errc::usage, str(config.weights, " holds adapters (adapter_config.json), not the weights of a model; ",
                                  "name it with --adapters, and the folder of the model that they adapt with ",
                                  "--weights")};
  if (!folder->model) return {};
  models::ModelConfig& model = *folder->model;
  constexpr std::uint32_t bytes_padded = 256 + 256 / 16;  // the most of a model of bytes (DataSet::describe)
  if (model.family == "llama") {
    if (config.model.context > model.positions)
      return Error{Errc::usage, str("model.context = ", config.model.context, ", but the weights in ", config.weights,
                                    " were made for ", model.positions, " tokens (max_position_embeddings)")};
    model.context = config.model.context;
  }
  if (config.data.kind == "text" && config.data.tokens.empty()) config.data.tokens = folder->tokenizer;
  if (config.data.kind == "text" && config.data.tokens.empty() && model.vocabulary > bytes_padded)
    return Error{Errc::usage, str("the weights in ", config.weights, " are of ", model.vocabulary, " tokens, and a ",
                                  "text without a tokenizer is bytes; set data.tokens to the model's tokenizer.json")};
  model.adapter = config.model.adapter;
  config.model = std::move(model);
  return {};
}

Result<RunConfig> load_run(const RunSource& source) {
  const auto text = run_file_text(source);
  if (!text) return text.error();
  auto config = parse_run_config(*text, source.name);
  if (!config) return config;
  for (const std::string& assignment : source.overrides)
    if (auto set = override_run_config(*config, assignment); !set) return set.error();
  if (!config->weights.empty())
    if (auto adopted = adopt_weights_folder(*config); !adopted) return adopted.error();
  if (auto opened = models::open_tokenizer_of(config->data); !opened) return opened.error();
  if (auto base = models::open_base_of(config->weights, config->data, config->model); !base) return base.error();
  config->data.progress = encoding_progress();
  return config;
}

Result<sim::NetworkModel> load_network(const std::string& name) {
  auto network = sim::NetworkModel::preset(name);
  if (network || !std::filesystem::is_regular_file(name)) return network;
  const auto text = read_text_file(name);
  if (!text) return text.error();
  return sim::NetworkModel::parse(*text, name);
}

int fail(const Error& error) {
  std::fprintf(stderr, "rumor: %s\n", error.text.c_str());
  switch (error.code) {
    case Errc::usage:
      return 2;
    case Errc::mismatch:
      return 3;
    case Errc::diverged:
      return 4;
    case Errc::not_found:
    case Errc::io:
    case Errc::corrupt:
    case Errc::limit:
    case Errc::not_finite:
      return 1;
  }
  return 1;
}

Result<std::string> read_text_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{Errc::not_found, "cannot open " + path + "; does it exist, and may you read it?"};
  std::ostringstream text;
  text << in.rdbuf();
  if (in.bad()) return Error{Errc::io, "cannot read " + path};
  return text.str();
}

Result<void> write_file(const std::string& path, const std::string& text) {
  if (path == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return {};
  }
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
  out.flush();
  if (!out) return Error{Errc::io, "cannot write " + path + "; does its directory exist, and is there room?"};
  return {};
}

Result<void> write_report(const std::string& directory, const std::string& page) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  return write_file(directory + "/index.html", page);
}

void watch_for_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { signalled = 1; };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() {
  return signalled != 0;
}

}  // namespace rumor::tools
