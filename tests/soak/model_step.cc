// One pass of a model from a folder of Hugging Face's, for hugging_face.py, which takes it with transformers as well.
//
//   model_step FOLDER CONTEXT ROWS OUT
//
// Token i of the batch is mix64(2^40 + i) modulo the vocabulary. Prints the mean loss. Writes the floats of the
// gradient, in the order of the tensors, to OUT/gradient, and the probability of every token in every place to
// OUT/probability.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "models/families/model.h"
#include "models/weights/model_json.h"
#include "models/weights/start_weights.h"
#include "runtime/base/prng.h"
#include "runtime/threads/thread_pool.h"

namespace {

using namespace rumor;
using namespace rumor::models;

int refuse(const std::string& why) {
  std::fprintf(stderr, "model_step: %s\n", why.c_str());
  return 2;
}

void write_floats(const std::string& path, const std::vector<float>& floats) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(floats.data()), static_cast<std::streamsize>(floats.size() * sizeof(float)));
}

int take_step(Model& model, const std::vector<float>& params, const ModelConfig& config, std::uint32_t rows,
              const std::string& out) {
  std::vector<Token> tokens(std::size_t{rows} * (config.context + 1));
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<Token>(mix64((std::uint64_t{1} << 40) + i) % config.vocabulary);
  Batch batch;
  batch.tokens = tokens;
  batch.rows = rows;
  std::vector<float> gradient(params.size()), probability(model.predictions(rows));
  std::printf("%.7f\n", static_cast<double>(model.loss_and_gradient(params, batch, gradient)));
  model.predict(params, batch, probability);
  write_floats(out + "/gradient", gradient);
  write_floats(out + "/probability", probability);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return refuse("usage: model_step FOLDER CONTEXT ROWS OUT");
  const std::string folder = argv[1];
  std::ifstream file(folder + "/config.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  auto config = parse_model_json(text, folder + "/config.json");
  if (!config) return refuse(config.error().text);
  if (config->family == "llama") config->context = static_cast<std::uint32_t>(std::atoi(argv[2]));
  auto made = make_model(*config);
  if (!made) return refuse(made.error().text);
  const auto params = read_named_weights(folder, (*made)->layout());
  if (!params) return refuse(params.error().text);
  daemon::ThreadPool pool(2);
  (*made)->set_parallel(&pool);
  return take_step(**made, *params, *config, static_cast<std::uint32_t>(std::atoi(argv[3])), argv[4]);
}
