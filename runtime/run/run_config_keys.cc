// Reads, checks and overrides a run file.
#include <algorithm>

#include "runtime/base/text.h"
#include "runtime/run/run_config.h"
#include "runtime/run/run_key_table.h"
#include "runtime/run/toml_table.h"
#include "runtime/run/toml_text.h"

namespace rumor {

namespace {

RunValue value_of(const toml::node& node) {
  if (const auto truth = node.value_exact<bool>()) return {*truth};
  if (const auto whole = node.value_exact<std::int64_t>()) return {*whole};
  if (const auto number = node.value_exact<double>()) return {*number};
  if (auto text = node.value_exact<std::string>()) return {std::move(*text)};
  const toml::array* array = node.as_array();
  if (array == nullptr) return {};
  std::vector<RunValue> list;
  for (const toml::node& item : *array) list.push_back(value_of(item));
  return {std::move(list)};
}

std::string_view last_part(std::string_view name) {
  return name.substr(name.find('.') + 1);
}

Error unknown_key(const std::string& where, const std::string& name) {
  std::vector<std::string> known;
  for (const RunKeyRow& key : run_key_table()) known.push_back(key.name);
  std::string hint;
  for (const RunKeyRow& key : run_key_table())  // perhaps the right key in the wrong section
    if (last_part(key.name) == last_part(name)) hint = key.name;
  if (hint.empty()) hint = nearest(name, known);
  if (hint.empty()) hint = known.front() + " and others: see `rumor peer --help`";
  return Error{Errc::usage, str(where, "unknown key ", name, "; did you mean ", hint, "?")};
}

Result<void> set_key(RunConfig& config, const std::string& name, const RunValue& value, const std::string& where) {
  for (const RunKeyRow& key : run_key_table()) {
    if (key.name != name) continue;
    if (const RunKeyProblem problem = key.read(config, value); !problem.empty())
      return Error{Errc::usage, str(where, name, " ", problem)};
    return {};
  }
  return unknown_key(where, name);
}

// A file says once how much an update may cost.
Result<void> check_budgets(const toml::table& table, const std::string& source) {
  const toml::table* keys = table["compress"].as_table();
  if (keys == nullptr) return {};
  std::string first;
  for (const char* key : {"density", "bytes_per_update", "bytes_per_second"}) {
    if (!keys->contains(key)) continue;
    if (!first.empty())
      return Error{Errc::usage, str(source, ": line ", keys->get(key)->source().begin.line, ": compress.", key,
                                    " and compress.", first, " exclude each other; keep one of them")};
    first = key;
  }
  return {};
}

Result<void> check_together(const RunConfig& config, const std::string& where) {
  if (config.follow_rate && config.has_byte_budget())
    return Error{Errc::usage, str(where, "compress.follow_rate moves a density, but the budget is in bytes; ",
                                  "set compress.density or leave follow_rate out")};
  if (config.early_density != 1 && config.has_byte_budget())
    return Error{Errc::usage, str(where, "exchange.early_density multiplies a density, but the budget is in bytes; ",
                                  "set compress.density or leave early_density out")};
  if (config.arithmetic == "portable" && !config.records)
    return Error{Errc::usage, str(where, "audit.arithmetic = \"portable\" is checked by audits, which need ",
                                  "audit.record = true")};
  if (config.hogwild > 0 && config.mode != "broadcast")
    return Error{Errc::usage, str(where, "optimizer.hogwild is of a peer that broadcasts; exchange.mode = \"",
                                  config.mode, "\" has no use for it, leave one of them out")};
  if (config.hogwild > 0 && config.round_rules.steps() > 1)
    return Error{Errc::usage, str(where, "optimizer.hogwild = ", config.hogwild, " makes several mini-batches a step ",
                                  "already, optimizer.hogwild_batches of them; leave exchange.local_steps out")};
  if (config.global_batch > 0 && config.hogwild > 0)
    return Error{Errc::usage, str(where, "optimizer.hogwild takes mini-batches of optimizer.batch rows whatever the ",
                                  "number of peers; set optimizer.global_batch = 0, or leave hogwild out")};
  if (config.global_batch > 0 && config.model.family == "lstm")
    return Error{Errc::usage, str(where, "optimizer.global_batch changes the rows of a mini-batch, and the state of ",
                                  "model.family = \"lstm\" goes on in as many lanes as there are rows; set ",
                                  "optimizer.global_batch = 0")};
  if (config.mode == "broadcast" && config.round_rules.local_steps > 1024)
    return Error{Errc::usage, str(where, "exchange.local_steps = ", config.round_rules.local_steps, " is more than an ",
                                  "update may have behind it, 1024")};
  if (config.mode == "broadcast" && (config.batches() > 1 || config.follows_delay()) &&
      config.optimizer.kind == "adaptive_revision")
    return Error{Errc::usage, str(where, "optimizer.kind = \"adaptive_revision\" revises one step after another, and "
                                  "optimizer.hogwild and exchange.local_steps take several at once; choose another "
                                  "kind, such as \"rmsprop\", or leave these out")};
  const PipelineRules& pipeline = config.pipeline;
  if (pipeline.stages > 1 && config.resolution.is_on())
    return Error{Errc::usage, str(where, "data.resolution is not possible with pipeline.stages = ", pipeline.stages,
                                  " yet; leave one of them out")};
  if (config.mode != "broadcast" && !config.has_own_models() && config.resolution.is_on())
    return Error{Errc::usage, str(where, "data.resolution is of peers that broadcast, average or codistill; with ",
                                  "exchange.mode = \"", config.mode, "\" leave it out")};
  if (pipeline.stages > 1 && config.model.adapter.is_on())
    return Error{Errc::usage, str(where, "model.adapter = \"", config.model.adapter.kind, "\" is not possible with ",
                                  "pipeline.stages = ", pipeline.stages, " yet; leave one of them out")};
  if (!config.model.adapter.start.empty() && !config.model.adapter.is_on())
    return Error{Errc::usage, str(where, "model.adapter_start = \"", config.model.adapter.start, "\" holds adapters, ",
                                  "and this run trains none; set model.adapter = \"lora\", or leave ",
                                  "model.adapter_start (--adapters) out")};
  if (pipeline.stages == 1 && !pipeline.cut.empty())
    return Error{Errc::usage, str(where, "pipeline.cut cuts a model into pipeline.stages, which is 1; set it too")};
  if (!pipeline.exits.empty() && pipeline.exits.size() + 1 != pipeline.stages)
    return Error{Errc::usage, str(where, "pipeline.exits has ", pipeline.exits.size(), " numbers, and ",
                                  "pipeline.stages = ", pipeline.stages, "; give one for each stage but the last, or ",
                                  "leave the key out")};
  if (!pipeline.exits.empty() && config.model.family != "mlp" && config.model.family != "cnn")
    return Error{Errc::usage, str(where, "pipeline.exits are for models that classify, of family \"mlp\" or \"cnn\", ",
                                  "and model.family = \"", config.model.family, "\"; leave the key out")};
  if (pipeline.stages > 1 && config.batch % pipeline.micro_batches != 0)
    return Error{Errc::usage, str(where, "pipeline.micro_batches = ", pipeline.micro_batches,
                                  " does not divide optimizer.batch = ", config.batch)};
  if (config.mode == "broadcast" && config.samples < config.batch)
    return Error{Errc::usage, str(where, "run.samples (", config.samples, ") is less than one batch (",
                                  config.batch, ")")};
  return {};
}

}  // namespace

Result<RunConfig> parse_run_config(std::string_view text, const std::string& source) {
  const Result<toml::table> parsed = parse_toml(text, source);
  if (!parsed) return parsed.error();
  const toml::table& table = *parsed;
  if (auto checked = check_budgets(table, source); !checked) return checked.error();
  RunConfig config;
  for (auto&& [section, content] : table) {
    const std::string name{std::string_view{section}};
    const toml::table* keys = content.as_table();
    if (keys == nullptr)
      return Error{Errc::usage,
                   str(source, ": line ", content.source().begin.line, ": ", name,
                       " stands outside a section; put it under one such as [run] or [compress]")};
    for (auto&& [key, value] : *keys) {
      const std::string where = str(source, ": line ", value.source().begin.line, ": ");
      if (auto set = set_key(config, name + "." + std::string{std::string_view{key}}, value_of(value), where); !set)
        return set.error();
    }
  }
  if (auto checked = check_together(config, source + ": "); !checked) return checked.error();
  return config;
}

Result<void> override_run_config(RunConfig& config, const std::string& assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0)
    return Error{Errc::usage,
                 str("--set ", assignment, " wants section.key=value, such as compress.density=0.003")};
  const std::string name = assignment.substr(0, equals);
  const std::string value = assignment.substr(equals + 1);
  const std::string where = "--set: ";
  for (const std::string& form : {value, "\"" + value + "\""}) {
    const Result<std::string> ascii = toml_in_ascii("value = " + form, where);
    if (!ascii) continue;
    try {
      const toml::table table = toml::parse(*ascii);
      if (const toml::node* node = table.get("value")) {
        if (auto set = set_key(config, name, value_of(*node), where); !set) return set.error();
        return check_together(config, where);
      }
    } catch (const toml::parse_error&) {
      continue;  // the value is no TOML: try it as a text
    }
  }
  return Error{Errc::usage, str(where, "cannot read the value of ", assignment)};
}

// The domain of a key is the message with which it refuses a value of no type.
std::vector<RunKey> run_keys() {
  const RunValue unwanted;
  std::vector<RunKey> list;
  for (const RunKeyRow& key : run_key_table()) {
    RunConfig ignored;
    std::string wants = key.read(ignored, unwanted);
    if (wants.starts_with("wants ")) wants.erase(0, 6);
    list.push_back({key.name, std::move(wants), key.shown(RunConfig()), key.shared != nullptr});
  }
  std::stable_sort(list.begin(), list.end(), [](const RunKey& a, const RunKey& b) {
    return a.name.substr(0, a.name.find('.')) < b.name.substr(0, b.name.find('.'));
  });
  return list;
}

}  // namespace rumor
