#include "runtime/bridge/swarm.h"

#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "models/families/model.h"
#include "runtime/base/bytes.h"
#include "runtime/base/grid_range.h"
#include "runtime/base/limits.h"
#include "runtime/base/sha256.h"
#include "runtime/base/text.h"
#include "runtime/daemon/state/storage.h"

namespace rumor::bridge {

namespace {

constexpr std::size_t run_file_bytes_max = 1 << 20;
// After which a peer that was asked to end is sure to have ended, but for a disk that does not answer.
constexpr Duration stop_patience = 60s;
// For a moment between two of the peer's turns: they take milliseconds.
constexpr Duration show_patience = 10s;

// The family of a run whose model only the programs know.
constexpr std::string_view outside_family = "outside";
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
  config.model.family = outside_family;
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

std::string shape_text(const TensorInfo& info) {
  std::string text;
  for (const std::uint32_t extent : info.shape) text += str(text.empty() ? "" : " x ", extent);
  return text.empty() ? "a single value" : text;
}

// Checks that the program's tensors have the shapes of the run's model; names may differ.
Result<void> compare(const ParamLayout& wanted, const ParamLayout& given) {
  const auto describe = [](const TensorInfo& info) { return str(info.name, " (", shape_text(info), ")"); };
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

// An answer to a plan without an update.
StepResult held(const StepPlan& plan) {
  StepResult nothing;
  nothing.held = true;
  nothing.period = plan.period;
  return nothing;
}

// Blocks all signals of this thread, and thereby of those that it starts meanwhile.
class SignalsOff {
 public:
  SignalsOff() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsOff() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsOff(const SignalsOff&) = delete;
  SignalsOff& operator=(const SignalsOff&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

Swarm::Swarm(RunConfig config) : home_(getpid()) { options_.config = std::move(config); }

Result<std::unique_ptr<Swarm>> Swarm::create(const std::string& run) {
  auto config = config_of(run);
  if (!config) return config.error();
  return std::unique_ptr<Swarm>(new Swarm(std::move(config).value()));
}

Swarm::~Swarm() {
  if (thread_.joinable()) end(Duration{0}, false);
}

bool Swarm::is_at_home() const { return getpid() == home_; }

// ---- before the start ----

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
  };
  if (const auto text = texts.find(name); text != texts.end()) {
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

// ---- the start ----

// The program's weights, which are part of the run's identity.
Result<Swarm::Start> Swarm::start_outside(ParamLayout layout) {
  if (!grid_given_)
    options_.config.grid_bits = grid_bits_for(largest_of(layout, tensors_), options_.config.grid_bits);
  auto own = on_grid(layout, tensors_, options_.config.grid_bits);
  if (!own) return own.error();
  auto start = std::make_shared<models::StartWeights>();
  start->weights = std::move(own).value();
  start->hash = sha256({reinterpret_cast<const std::uint8_t*>(start->weights.data()),
                        start->weights.size() * sizeof(std::int32_t)});
  if (!frozen_.empty()) {
    ByteWriter both;
    both.raw(start->hash.view());
    both.raw({reinterpret_cast<const std::uint8_t*>(frozen_.data()), frozen_.size()});
    start->hash = sha256(both.bytes());
  }
  training_.start = start;
  return Start{std::move(layout), start->weights};
}

// Weights from the run's seed or its file, as its other peers make them.
Result<Swarm::Start> Swarm::start_built_in(const ParamLayout& layout) {
  const RunConfig& config = options_.config;
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
  return Start{(*model)->layout(), training_.start ? training_.start->weights
                                                : models::initial_weights(**model, config.seed, config.grid_bits)};
}

Result<void> Swarm::make_trainer() {
  const RunConfig& config = options_.config;
  auto layout = ParamLayout::create(infos_);
  if (!layout) return layout.error();
  const bool outside = config.model.family == outside_family;
  auto start = outside ? start_outside(std::move(layout).value()) : start_built_in(*layout);
  if (!start) return start.error();
  auto trainer = OutsideTrainer::create(config, start->layout, tensors_, local_, std::move(start->weights));
  if (!trainer) return trainer.error();
  trainer_ = trainer->get();
  training_.trainer = std::move(trainer).value();
  return {};
}

Result<bool> Swarm::start(Duration patience) {
  if (began_) return Error{Errc::usage, "this swarm was started before; make another one"};
  began_ = true;
  if (auto fetched = on_gpus_.fetch(); !fetched) return fetched.error();
  if (auto made = make_trainer(); !made) return made.error();
  {
    const SignalsOff off;
    thread_ = std::thread([this] { run(); });
  }
  handover_.wait_for_connection();
  const bool answered = handover_.wait_for_plan(patience);
  if (handover_.closed()) {
    // A run that is over is none to fail with: step() says so, and leave() gives its weights.
    auto why = reason();
    if (why) return true;
    thread_.join();
    return why.error();
  }
  if (auto plan = handover_.take()) {
    trainer_->catch_up();
    handover_.put_back(std::move(*plan));
    if (auto stored = on_gpus_.store(); !stored) return stored.error();
  }
  last_train_ = Clock::now();
  return answered;
}

void Swarm::run() {
  try {
    ended_ = daemon::run_embedded_peer(options_, std::move(training_), handover_);
  } catch (const std::exception& error) {
    ended_ = Error{Errc::io, str("the peer broke off: ", error.what())};
  }
  handover_.close();
}

// ---- training ----

Result<bool> Swarm::step(std::uint32_t samples, double loss) {
  if (shows_shared_)
    return Error{Errc::usage, "the memory holds the shared weights: end that before the next step"};
  work_.steps += 1;
  work_.samples += samples;
  loss_sum_ += std::isfinite(loss) ? loss : 0;
  work_.loss = loss_sum_ / work_.steps;
  if (handover_.closed()) {
    if (auto why = reason(); !why) return why.error();
    return false;
  }
  const auto since = std::chrono::duration<double>(Clock::now() - last_train_);
  if (std::chrono::duration<double>(train_time_).count() > overhead_ * since.count()) return true;
  if (const auto plan = handover_.take()) {
    if (auto trained = train(*plan); !trained) return trained.error();
  }
  return true;
}

Result<void> Swarm::train(const StepPlan& plan) {
  const Clock::time_point begin = Clock::now();
  if (std::exchange(undo_, false)) {
    trainer_->take_back();
    work_ = {};
  }
  if (auto fetched = on_gpus_.fetch(); !fetched) {
    handover_.give(held(plan));
    return fetched;
  }
  trainer_->told(work_);
  handover_.give(trainer_->step(plan));
  work_ = {};
  loss_sum_ = 0;
  auto stored = on_gpus_.store();
  last_train_ = Clock::now();
  train_time_ = last_train_ - begin;
  return stored;
}

Result<void> Swarm::checkpoint() {
  if (!options_.state) return Error{Errc::usage, "a checkpoint wants a directory; give the option state"};
  handover_.ask_for_checkpoint();
  return {};
}

std::optional<std::string> Swarm::warning() {
  if (auto complaint = handover_.take_complaint()) return complaint;
  return running() ? trainer_->take_warning() : std::nullopt;
}

Result<void> Swarm::show_shared(bool shared) {
  if (shared == shows_shared_) return {};
  const bool is_due = handover_.wait_for_plan(show_patience);
  const auto plan = is_due ? handover_.take() : std::nullopt;
  // A peer that has ended meanwhile leaves the shared weights there, as leave() would.
  if (!plan && !shared && handover_.closed()) return {};
  if (!plan)
    return Error{Errc::usage, "the peer trains no more, or waits for others: nothing can be shown; after leave() the "
                              "memory holds the shared weights anyway"};
  auto shown = on_gpus_.fetch();
  if (shown) {
    if (shared) trainer_->catch_up();
    if (shared)
      trainer_->show_shared();
    else
      trainer_->take_back();
    shows_shared_ = shared;
    shown = on_gpus_.store();
  }
  handover_.put_back(*plan);
  return shown;
}

// ---- the end ----

Result<void> Swarm::leave(Duration patience) {
  undo_ = undo_ || shows_shared_;
  end(patience, true);
  if (ended_ && ended_->ok()) {
    if (auto fetched = on_gpus_.fetch(); !fetched) return fetched;  // all other values must stay unchanged
    trainer_->load_shared();
    if (auto stored = on_gpus_.store(); !stored) return stored;
  }
  return reason();
}

// Answers the peer's requests until it has ended.
void Swarm::end(Duration patience, bool with_memory) {
  const auto serve = [&](Duration time) {
    const Clock::time_point until = Clock::now() + time;
    while (!handover_.closed()) {
      const auto left = std::chrono::duration_cast<Duration>(until - Clock::now());
      if (left <= Duration{0} || !handover_.wait_for_plan(left)) return;
      const auto plan = handover_.take();
      if (!plan) continue;
      if (with_memory) {
        static_cast<void>(train(*plan));  // a GPU that has failed says so again when it is to have the shared weights
      } else {
        handover_.give(held(*plan));
      }
    }
  };
  // The last update carries the changes learned last. Between two steps its plan arrives at once.
  if (with_memory && work_.steps > 0) handover_.wait_for_plan(std::min<Duration>(patience, 1s));
  if (patience > Duration{0}) {
    handover_.ask_to_finish();
    serve(patience);
  }
  handover_.ask_to_stop();
  serve(stop_patience);
  thread_.join();
}

// Why the peer has ended, where that is not as it should be.
Result<void> Swarm::reason() const {
  if (!ended_) return {};
  if (!ended_->ok()) return ended_->error();
  const std::string why = handover_.complaint();
  switch ((*ended_)->exit_status) {
    case 0:
      return {};
    case 3:
      return Error{Errc::mismatch,
                   str(why, "; where the name of the run is right, the models differ: in names or shapes of tensors, ",
                       "in the weights they begin with, which must be equal everywhere (make the model from the same ",
                       "seed, such as torch.manual_seed(1), or load the same file), or in frozen weights")};
    case 4:
      return Error{Errc::diverged, why};
    default:
      return Error{Errc::not_finite, why.empty() ? "the peer has failed" : why};
  }
}

}  // namespace rumor::bridge
