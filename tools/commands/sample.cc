// rumor sample: text out of a trained language model, token after token.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>

#include "runtime/base/text.h"
#include "runtime/daemon/loop/event_loop.h"
#include "tools/text/text_model.h"
#include "tools/text/tokenizer.h"
#include "tools/words/command.h"

namespace rumor::tools {
namespace {

Result<void> check(const SampleCommand& command) {
  if (!(command.temperature >= 0 && command.temperature <= 100))
    return Error{Errc::usage, "--temperature must be from 0 (the likeliest always) to 100"};
  return {};
}

// The tokens that the model continues; never empty.
Result<std::vector<models::Token>> read_prompt(const SampleCommand& command, const Tokenizer& tokenizer,
                                               const TextModel& model) {
  auto tokens = tokenizer.encode(command.prompt);
  if (!tokens) return tokens.error();
  if (model.context && static_cast<long>(tokens->size()) > *model.context)
    return Error{Errc::usage, str("--prompt has ", tokens->size(), " tokens, but this model sees ",
                                  *model.context, " at once; shorten it")};
  if (tokens->empty()) tokens->push_back(tokenizer.beginning());
  return tokens;
}

// True when it could be written.
bool print(const std::string& text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
}

// The weights that the peers of a run have now.
Result<daemon::ExportedWeights> follow(const SampleCommand& command, const RunConfig& config) {
  daemon::PeerOptions options = daemon::following_options(config);
  options.config.seeds = command.live;
  options.config.status.clear();
  options.config.events.clear();
  options.config.tensorboard.clear();
  if (!command.token.empty()) options.config.token = command.token;
  options.state = command.state;
  options.muted = true;
  std::optional<daemon::ExportedWeights> weights;
  options.following->once = [&weights](daemon::ExportedWeights taken) { weights = std::move(taken); };
  std::fprintf(stderr, "rumor: following run %s until this process has its weights\n", config.name.c_str());
  const auto ended = daemon::run_peer(options);
  if (!ended) return ended.error();
  if (!weights)
    return Error{ended->exit_status == 3 ? Errc::mismatch : Errc::io,
                 str("--live: no weights were taken: ", ended->trouble.empty() ? "interrupted" : ended->trouble)};
  std::fprintf(stderr, "rumor: weights after %llu samples, digest %s\n",
               static_cast<unsigned long long>(weights->samples), digest_text(*weights->digest).c_str());
  return std::move(*weights);
}

struct Source {
  TextModel model;
  std::string tokens;  // a tokenizer.json; empty: the one beside the model
};

Result<Source> live_source(const SampleCommand& command) {
  const auto config = load_run({command.source, command.overrides});
  if (!config) return config.error();
  const auto data = models::describe_data(config->data);
  if (!data) return data.error();
  models::ModelConfig described = config->model;
  data->describe(described);
  if (!writes_text(described))
    return Error{Errc::usage, str(command.source, " trains a model of family ", described.family,
                                  ", which writes no text; --live is for GPT, LSTM and Llama")};
  auto weights = follow(command, *config);
  if (!weights) return weights.error();
  auto model = text_model_of(command.source, described, weights->form.layout, std::move(weights->weights));
  if (!model) return model.error();
  return Source{std::move(model).value(), command.tokens.empty() ? config->data.tokens : command.tokens};
}

Result<Source> source_of(const SampleCommand& command) {
  if (!command.live.empty()) return live_source(command);
  auto model = load_text_model(command.source, command.heads, command.base);
  if (!model) return model.error();
  return Source{std::move(model).value(), command.tokens};
}

}  // namespace

int run_sample_command(const SampleCommand& command) {
  if (auto fine = check(command); !fine) return fail(fine.error());
  const auto source = source_of(command);
  if (!source) return fail(source.error());
  const TextModel* const model = &source->model;
  const auto tokenizer = Tokenizer::open(model->directory, static_cast<std::uint32_t>(model->vocabulary),
                                         source->tokens);
  if (!tokenizer) return fail(tokenizer.error());
  const auto prompt = read_prompt(command, *tokenizer, *model);
  if (!prompt) return fail(prompt.error());
  if (!tokenizer->note().empty()) std::fprintf(stderr, "rumor: %s\n", tokenizer->note().c_str());

  watch_for_signals();
  const models::SamplingRule rule{command.temperature, command.top_k};
  Prng prng = Prng::named(command.seed, "sample");
  std::span<const float> logits;
  for (const models::Token token : *prompt) logits = model->decoder->read(token);
  bool writes = print(command.prompt);
  for (std::uint64_t i = 0; i < command.length && writes && !interrupted(); ++i) {
    if (!std::all_of(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); }))
      return fail(
          {Errc::mismatch, str(command.source, ": this model has diverged: its outputs are not finite")});
    const models::Token token = models::draw_token(logits, rule, prng);
    writes = print(tokenizer->decode(token));
    if (i + 1 < command.length) logits = model->decoder->read(token);
  }
  if (writes) print("\n");
  return 0;
}

}  // namespace rumor::tools
