#include "tools/audit/audited_state.h"

#include <utility>

#include "models/data/data_hash.h"
#include "runtime/base/text.h"
#include "runtime/daemon/state/storage.h"
#include "runtime/replica/checkpoint.h"
#include "runtime/run/run_identity.h"

namespace rumor::tools {

namespace {

Result<std::pair<RunForm, ReplicaState>> newest_state(const std::string& folder) {
  std::pair<RunForm, ReplicaState> state;
  const auto newest = daemon::load_checkpoint(folder, [&](BytesView bytes) -> Result<void> {
    auto form = read_checkpoint_form(bytes);
    if (!form) return form.error();
    auto checkpoint = decode_checkpoint(*form, bytes);
    if (!checkpoint) return checkpoint.error();
    state = {std::move(form).value(), std::move(checkpoint->replica)};
    return {};
  });
  if (newest) return state;
  return Error{newest.error().code,
               str(folder, ": ", newest.error().text, "; is it the --state directory of a peer?")};
}

}  // namespace

Result<std::unique_ptr<AuditedState>> AuditedState::open(const RunSource& source, const std::string& folder) {
  auto config = load_run(source);
  if (!config) return config.error();
  if (!config->records)
    return Error{Errc::usage, str("the updates of this run have no records of how they were made; a run has them with ",
                                  "audit.record = true, on all its peers and from its start")};
  std::unique_ptr<AuditedState> state(new AuditedState(folder));
  if (auto read = state->read(*config, folder); !read) return read.error();
  return state;
}

Result<void> AuditedState::read(const RunConfig& config, const std::string& folder) {
  auto data = models::load_data(config.data, config.model.context);
  if (!data) return data.error();
  auto start = models::load_start_weights(config.weights, config.model, **data, config.grid_bits);
  if (!start) return start.error();
  auto newest = newest_state(folder);
  if (!newest) return newest.error();
  RunForm& form = newest->first;
  if (form.run != run_id(config, form.layout, start->get()))
    return Error{Errc::mismatch, str(folder, " is of run ", form.run.brief(), ", and this run file makes another; all ",
                                     "keys that peers share must be as the peers have them")};
  if (const auto opened = log_.open(disk_, form.run); !opened) return opened.error();
  if (const auto opened = past_.open(disk_, form.run, UpdateLog::Contents::also_taken_back); !opened)
    return opened.error();
  if (auto added = add_log(form, newest->second); !added) return added;
  auto base = audit::without_log(form, std::move(newest->second), log_);
  if (!base) return base.error();
  const Hash256 hash = models::training_data_hash(**data);
  run_ = std::make_unique<audit::AuditedRun>(
      audit::AuditedRun{config, std::move(form), std::move(data).value(), hash, past_, std::move(base).value()});
  return prepare(start->get());
}

// The weights that the run begins with must be those of the run file, or the audit would be of something else.
Result<void> AuditedState::prepare(const models::StartWeights* start) {
  auto trainer = ModelTrainer::create(run_->config, run_->data, {}, 1);
  if (!trainer) return trainer.error();
  const auto initial = start != nullptr ? start->weights : (*trainer)->initial_weights();
  if (run_->base.have.empty() && initial != run_->base.weights)
    return Error{Errc::corrupt, "the log is complete, but the weights less its updates are not the initial ones"};
  threads_ = std::make_unique<daemon::ThreadPool>(
      daemon::ThreadPool::width_for(run_->form.layout.params(), (*trainer)->multiply_adds()));
  run_->parallel = threads_.get();
  return {};
}

// The log of a running peer is newer than its checkpoint.
Result<void> AuditedState::add_log(const RunForm& form, ReplicaState state) {
  Replica replica(form.run, form.layout, state.weights);
  if (auto restored = replica.restore(std::move(state)); !restored) return restored;
  for (const UpdateKey& key : log_.keys()) {
    const auto update = replica.is_revoked(key) ? std::nullopt : log_.find(key);
    if (!update || replica.have().contains(key)) continue;
    auto change = compress::decode(form.layout, compress::update_part(*update->payload));
    if (!change) return change.error();
    if (auto applied = replica.apply(update->header, std::move(change).value()); !applied) return applied.error();
  }
  digest_ = replica.digest();
  samples_ = replica.samples();
  return {};
}

}  // namespace rumor::tools
