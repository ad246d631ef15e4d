// rumor key: keys of peers, and admission to a run: allowlists, join tokens, revocations.
#include <fcntl.h>
#include <openssl/rand.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "gossip/asio/identity.h"
#include "models/families/model.h"
#include "runtime/base/limits.h"
#include "runtime/base/text.h"
#include "runtime/daemon/admission/admission_files.h"
#include "runtime/daemon/loop/auto_stage.h"
#include "runtime/daemon/state/storage.h"
#include "runtime/run/run_identity.h"
#include "tools/words/command.h"

namespace rumor::tools {

namespace {

std::string key_path(const std::string& state) {
  return state + "/identity.pem";
}

Result<net::Identity> load_key(const std::string& state) {
  auto identity = net::Identity::load(key_path(state));
  if (!identity && identity.error().code == Errc::not_found)
    return Error{Errc::not_found,
                 str("there is no key in ", state, "; make one with: rumor key new --state ", state)};
  return identity;
}

int print_key(const net::Identity& identity) {
  std::printf("%s\n", identity.id().hex().c_str());
  return 0;
}

int new_key(const KeyCommand& command) {
  std::error_code ignored;
  if (std::filesystem::exists(key_path(command.state), ignored))
    return fail({Errc::usage, str("there is a key in ", command.state,
                                  " already; show it with: rumor key show --state ", command.state)});
  if (auto made = daemon::make_directory(command.state); !made) return fail(made.error());
  const auto identity = net::Identity::load_or_create(key_path(command.state));
  return identity ? print_key(*identity) : fail(identity.error());
}

// That of the directory, then those of the stages in it (runtime/daemon/loop/several_stages.h), each with its stage.
int show_keys(const KeyCommand& command) {
  std::string keys;
  for (std::uint32_t stage = 1; stage <= limits::stages_max; ++stage) {
    const auto of_stage = net::Identity::load(key_path(daemon::stage_folder(command.state, stage)));
    if (of_stage) keys += str(of_stage->id().hex(), " stage-", stage, "\n");
    else if (of_stage.error().code != Errc::not_found) return fail(of_stage.error());
  }
  const auto identity = load_key(command.state);
  if (!identity && (keys.empty() || identity.error().code != Errc::not_found)) return fail(identity.error());
  if (identity) print_key(*identity);
  std::printf("%s", keys.c_str());
  return 0;
}

int allow(const KeyCommand& command) {
  const auto key = gossip::parse_node_id(command.key);
  if (!key) return fail(key.error());
  std::string text;
  const auto bytes = daemon::read_file(command.file);
  if (bytes.ok())
    text.assign(bytes->begin(), bytes->end());
  else if (bytes.error().code != Errc::not_found || command.remove)
    return fail(bytes.error());
  if (const auto list = gossip::parse_allow_list(text, command.file); !list) return fail(list.error());
  for (const char c : command.remark)
    if (c == '\n' || c == '\r') return fail({Errc::usage, "--remark wants one line"});
  const std::string changed = daemon::with_key(text, *key, !command.remove, command.remark);
  const BytesView view{reinterpret_cast<const std::uint8_t*>(changed.data()), changed.size()};
  if (auto written = daemon::write_atomically(command.file, view); !written) return fail(written.error());
  std::fprintf(stderr, "%s %s in %s; running peers see it within a second\n",
               command.remove ? "refused" : "allowed", key->brief().c_str(), command.file.c_str());
  return 0;
}

// The run id of a run file. It depends on the model, which needs the shape of the data set.
Result<RunId> run_of(const RunConfig& config) {
  const auto data = models::load_data(config.data, config.model.context);
  if (!data) return data.error();
  models::ModelConfig model_config = config.model;
  (*data)->describe(model_config);
  const auto model = models::make_model(model_config);
  if (!model) return model.error();
  const auto start = models::load_start_weights(config.weights, config.model, **data, config.grid_bits);
  if (!start) return start.error();
  return run_id(config, (*model)->layout(), start->get());
}

// The owner's key, once it is known to be the one that the run file names.
Result<net::Identity> owner_of(const KeyCommand& command, const RunConfig& config) {
  auto identity = load_key(command.state);
  if (!identity) return identity;
  if (config.owner.empty())
    return Error{Errc::usage, str("the run has no owner: put owner = \"", identity->id().hex(),
                                  "\" under [run], for all peers alike")};
  if (config.owner != identity->id().hex())
    return Error{Errc::usage, str("the key in ", command.state, " is ", identity->id().brief(),
                                  "..., but the run's owner is ", config.owner.substr(0, 8), "...")};
  return identity;
}

// To a new file that its owner alone can read, or to stdout.
Result<void> write_secret(const std::string& path, const std::string& text) {
  if (path == "-") return write_file(path, text);
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return Error{Errc::io, str("cannot make ", path, ": ", std::strerror(errno))};
  const bool written = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(file);
  if (!written) return Error{Errc::io, str("cannot write ", path)};
  return {};
}

int make_token(const KeyCommand& command) {
  const auto config = load_run(command.run);
  if (!config) return fail(config.error());
  const auto owner = owner_of(command, *config);
  if (!owner) return fail(owner.error());
  const auto run = run_of(*config);
  if (!run) return fail(run.error());
  gossip::Token terms;
  terms.run = *run;
  terms.role = command.observe ? gossip::Role::observe : gossip::Role::train;
  terms.uses_max = command.uses;
  if (command.days > 0)
    terms.not_after = daemon::unix_now() + static_cast<std::int64_t>(command.days * 86'400);
  if (!command.key.empty()) {
    const auto node = gossip::parse_node_id(command.key);
    if (!node) return fail(node.error());
    terms.node = *node;
  }
  SigningKey::Seed secret{};
  RUMOR_CHECK(RAND_bytes(secret.data(), static_cast<int>(secret.size())) == 1);
  const auto token = daemon::make_token(owner->signing_key(), terms, secret);
  if (auto written = write_secret(command.file, daemon::token_text(token)); !written)
    return fail(written.error());
  return 0;
}

int revoke(const KeyCommand& command) {
  const auto config = load_run(command.run);
  if (!config) return fail(config.error());
  const auto owner = owner_of(command, *config);
  if (!owner) return fail(owner.error());
  const auto run = run_of(*config);
  if (!run) return fail(run.error());
  const auto node = gossip::parse_node_id(command.key);
  if (!node) return fail(node.error());
  const auto revocation =
      daemon::make_revocation(owner->signing_key(), *run, {*node, {}, {1, gossip::seq_max}, {}});
  std::printf("%s", daemon::revocation_text(revocation).c_str());
  return 0;
}

}  // namespace

int run_key_command(const KeyCommand& command) {
  switch (command.action) {
    case KeyCommand::Action::make:
      return new_key(command);
    case KeyCommand::Action::show:
      return show_keys(command);
    case KeyCommand::Action::allow:
      return allow(command);
    case KeyCommand::Action::token:
      return make_token(command);
    case KeyCommand::Action::revoke:
      return revoke(command);
  }
  return 2;
}

}  // namespace rumor::tools
