// How a program's peer begins: the run's identity, from the program's weights or from those that the run began with.
#include <algorithm>
#include <memory>
#include <utility>

#include "models/families/model.h"
#include "runtime/base/grid_range.h"
#include "runtime/base/run_part.h"
#include "runtime/base/sha256.h"
#include "runtime/base/text.h"
#include "runtime/bridge/buffers_option.h"
#include "runtime/bridge/swarm.h"
#include "runtime/daemon/loop/run_probe.h"
#include "runtime/daemon/state/peer_files.h"
#include "runtime/run/run_identity.h"

namespace rumor::bridge {

namespace {

// A short run sends more entries a step, so that each parameter is sent about as often as in a long one.
double density_for_steps(double steps, double least) {
  constexpr double most = 0.1;
  return std::clamp(entries_wanted / steps, least, most);
}

// Checks that the program's tensors have the shapes of the run's model; names may differ.
Result<void> compare(const ParamLayout& wanted, const ParamLayout& given) {
  const std::size_t both = std::min(wanted.tensors().size(), given.tensors().size());
  for (std::size_t t = 0; t < both; ++t) {
    const TensorInfo &one = wanted.tensors()[t], &other = given.tensors()[t];
    if (one.shape != other.shape)
      return Error{Errc::mismatch, str("tensor ", t + 1, " of the run's model is ", describe(one), ", that of this ",
                                       "program is ", describe(other), "; shapes and order must be the same")};
  }
  if (wanted.tensors().size() != given.tensors().size())
    return Error{Errc::mismatch, str("the run's model has ", wanted.tensors().size(), " tensors, that of this program ",
                                     given.tensors().size())};
  return {};
}

}  // namespace

// The weights that the run began with, where the program takes the run's: from the state directory, or from a seed.
// Nothing for the first peer of a run, which has neither.
Result<std::optional<StartNote>> Swarm::note_of_run() {
  std::optional<Bytes> note;
  if (!takes_weights_) return std::optional<StartNote>();
  if (options_.state) note = daemon::PeerFiles::start_of(*options_.state);
  if (!note && !options_.config.seeds.empty()) {
    auto answer = daemon::ask_for_run(options_.config.seeds, patience_, [this] { return handover_.interrupted(); });
    if (!answer) return answer.error();
    asked_ = std::move(answer).value();
    note = asked_.start;
  }
  if (!note) return std::optional<StartNote>();
  const auto read = StartNote::decode(*note);
  if (!read)
    return Error{Errc::mismatch, "the seeds' run began with weights from a seed of random numbers, not with those of a "
                                 "program: name its run file"};
  return read;
}

Error Swarm::other_weights(const std::vector<RunPart>& parts) const {
  const std::string unlike = unlike_parts(parts, daemon::PeerFiles::parts_of(*options_.state));
  return {Errc::mismatch, str("the state in ", *options_.state, " is of a run that began with other weights than this ",
                              "model has: set weights='swarm' to go on with that run, or choose another directory",
                              unlike.empty() ? "" : "; as for that run, ", unlike)};
}

// The program's weights, or in their stead a note on the run's, are part of the run's identity.
Result<Swarm::Start> Swarm::start_outside(ParamLayout layout) {
  RunConfig& config = options_.config;
  if (steps_ && !density_given_) config.density = density_for_steps(*steps_, config.density);
  const auto note = note_of_run();
  if (!note) return note.error();
  if (!grid_given_)
    config.grid_bits = *note ? (*note)->grid_bits : grid_bits_for(largest_of(layout, tensors_), config.grid_bits);
  auto own = on_grid(layout, tensors_, config.grid_bits);
  if (!own) return own.error();
  auto start = std::make_shared<models::StartWeights>();
  start->weights = std::move(own).value();
  start->hash = *note ? (*note)->hash
                      : sha256({reinterpret_cast<const std::uint8_t*>(start->weights.data()),
                                start->weights.size() * sizeof(std::int32_t)});
  start->beside = frozen_;
  if (const auto kept = options_.state ? daemon::PeerFiles::start_of(*options_.state) : std::nullopt)
    if (kept != StartNote{config.grid_bits, start->hash}.encode())
      return other_weights(run_parts(config, layout, start.get()));
  training_.start = start;
  training_.lacks_weights = lacks_weights_ = note->has_value();
  if (!asked_.run.is_zero() && run_id(config, layout, start.get()) != asked_.run)
    return Error{Errc::mismatch, str("the seeds train run \"", asked_.name, "\", which is not this one: ",
                                     unlike_parts(run_parts(config, layout, start.get()), asked_.parts))};
  return Start{std::move(layout), {}};
}

// Weights from the run's seed or its file, as its other peers make them.
Result<Swarm::Start> Swarm::start_built_in(const ParamLayout& layout) {
  const RunConfig& config = options_.config;
  if (config.model.adapter.is_on())
    return Error{Errc::usage, "model.adapter is for `rumor peer`; in a program, adapt the model itself, with PEFT for "
                              "example, and leave model.adapter out"};
  const auto data = models::load_data(config.data, config.model.context);
  if (!data) return Error{data.error().code, "this run's model is known from its data: " + data.error().text};
  models::ModelConfig shape = config.model;
  (*data)->describe(shape);
  const auto model = models::make_model(shape);
  if (!model) return model.error();
  if (auto equal = compare((*model)->layout(), layout); !equal) return equal.error();
  auto start = models::load_start_weights(config.weights, config.model, **data, config.grid_bits);
  if (!start) return start.error();
  training_.start = std::move(start).value();
  if (training_.start) return Start{(*model)->layout(), {}};
  return Start{(*model)->layout(), models::initial_weights(**model, config.seed, config.grid_bits)};
}

Result<void> Swarm::make_trainer() {
  if (auto opened = models::open_tokenizer_of(options_.config.data); !opened) return opened;
  const RunConfig& config = options_.config;
  if (config.resolution.is_on())
    return Error{Errc::usage, "data.resolution is for `rumor peer`; a program gives its loop the pictures itself, so "
                              "leave data.resolution out"};
  auto layout = ParamLayout::create(infos_);
  if (!layout) return layout.error();
  const bool outside = config.model.family == outside_family;
  auto start = outside ? start_outside(std::move(layout).value()) : start_built_in(*layout);
  if (!start) return start.error();
  auto trainer = OutsideTrainer::create(config, start->layout, tensors_, local_, std::move(start->weights));
  if (!trainer) return trainer.error();
  trainer_ = trainer->get();
  if (training_.lacks_weights) trainer_->await_weights();
  auto shared = shared_buffers(training_.buffers_json, local_);
  if (!shared) return shared.error();
  if (auto means = trainer_->share(std::move(shared).value()); !means) return means;
  training_.trainer = std::move(trainer).value();
  return {};
}

}  // namespace rumor::bridge
