// rumor sample: text out of a trained language model, token after token.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "runtime/base/text.h"
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

}  // namespace

int run_sample_command(const SampleCommand& command) {
  if (auto fine = check(command); !fine) return fail(fine.error());
  const auto model = load_text_model(command.source, command.heads);
  if (!model) return fail(model.error());
  const auto tokenizer = Tokenizer::open(model->directory, static_cast<std::uint32_t>(model->vocabulary),
                                         command.tokens);
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
