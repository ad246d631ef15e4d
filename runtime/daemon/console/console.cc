#include "runtime/daemon/console/console.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "runtime/base/text.h"
#include "runtime/run/run_config.h"

namespace rumor::daemon {

namespace {

// Physical memory that the process has had at most; 0: the system does not say.
std::uint64_t peak_bytes() {
  rusage used{};
  return getrusage(RUSAGE_SELF, &used) == 0 ? static_cast<std::uint64_t>(used.ru_maxrss) * 1024 : 0;  // KiB on Linux
}

std::string memory_text(const NodeStatus& s) {
  const MemoryUse& m = s.memory;
  const auto mega = [](std::uint64_t bytes) { return fixed(static_cast<double>(bytes) / 1e6, 1) + " MB"; };
  const std::pair<const char*, std::uint64_t> parts[] = {{"weights", m.weights},     {"view", m.view},
                                                         {"gradient", m.gradient},   {"residual", m.residual},
                                                         {"optimizer", m.optimizer}, {"hogwild", m.hogwild}};
  std::string each;
  for (const auto& [name, bytes] : parts)
    if (bytes > 0)
      each += str(each.empty() ? "" : ", ", name, " ",
                  fixed(static_cast<double>(bytes) / static_cast<double>(s.params), 1));
  return str(fixed(s.bytes_per_parameter(), 1), " bytes a parameter (", each, "), together ", mega(m.of_parameters()),
             "; entries ", mega(m.in_flight + m.entries), ", activations ", mega(m.activations), ", log ", mega(m.log),
             "; the process at most ", mega(peak_bytes()));
}

}  // namespace

Console::Console() {
  const char* term = std::getenv("TERM");
  terminal_ = isatty(STDERR_FILENO) != 0 && !(term != nullptr && std::string_view(term) == "dumb");
}

std::string rate_text(double bytes_per_second) {
  if (bytes_per_second >= 1e6) return fixed(bytes_per_second / 1e6, 1) + " MB/s";
  return fixed(bytes_per_second / 1e3, bytes_per_second < 1e4 ? 1 : 0) + " kB/s";
}

void Console::clear() {
  if (line_open_) std::fputs("\r\x1b[K", stderr);
  line_open_ = false;
}

void Console::tell(gossip::Note::Level level, const std::string& text, const char* prefix) {
  clear();
  if (!muted_) std::fprintf(stderr, "rumor: %s%s%s\n", name_.c_str(), prefix, text.c_str());
  if (listener_) listener_(level, text);
}

void Console::note(const gossip::Note& note) {
  if (note.level == gossip::Note::Level::debug) return;
  const char* prefix = note.level == gossip::Note::Level::error     ? "error: "
                       : note.level == gossip::Note::Level::warning ? "warning: "
                                                                    : "";
  tell(note.level, note.text, prefix);
}

void Console::started(const NodeStatus& s, const std::string& device, const std::string& listening,
                      const std::string& status_address, const std::string& state) {
  line(str("run ", s.run_name, " (", s.run_id.substr(0, 8), "), peer ", s.node_id.substr(0, 8), ", ",
           s.params, " parameters", device.empty() ? "" : ", on GPU " + device));
  if (s.stage.stage > 0)
    line(str("stage ", s.stage.stage, " of ", s.stage.stages, ": no peer evaluates the whole model; the loss shown is ",
             "that of fresh micro-batches, before they are trained on"));
  if (listening.empty()) line("it follows the run: no other peer dials it");
  else line(str("listening on ", listening, "; others join with --seed ", listening));
  if (!status_address.empty()) line("status at http://" + status_address + "/");
  if (state.empty()) line("no --state directory: a restart begins anew, from the other peers");
}

void Console::log_trouble(const std::string& trouble) {
  if (trouble.empty() != log_trouble_.empty())
    line(trouble.empty() ? "updates are kept on disk again"
                         : "updates are not kept on disk: " + trouble +
                               "; training goes on, and what memory holds is served");
  log_trouble_ = trouble;
}

void Console::progress(const NodeStatus& s, double seconds) {
  if (seconds < next_at_) return;
  const double span = std::max(seconds - last_at_, 1e-3);
  const double sent = static_cast<double>(s.traffic.sent_bytes - last_sent_) / span;
  const double received = static_cast<double>(s.traffic.received_bytes - last_received_) / span;
  const double samples = static_cast<double>(s.samples - std::min(s.samples, last_samples_)) / span;
  last_at_ = seconds;
  last_sent_ = s.traffic.sent_bytes;
  last_received_ = s.traffic.received_bytes;
  last_samples_ = s.samples;
  next_at_ = seconds + (terminal_ && !muted_ ? 0.5 : 5.0);
  // A run of another program's training loop may have no end that is known, and has none any more when it leaves.
  const bool has_end = s.samples_planned > 0 && s.samples_planned < samples_unbounded;
  const std::string planned = has_end ? str("/", s.samples_planned) : "";
  std::string text = str(s.phase, "  ", s.samples, planned, " samples (", fixed(samples, 0),
                         "/s)");
  if (s.training.loss || !s.training.observes)
    text += str(s.stage.stage > 0 ? "  training loss " : "  loss ",
                fixed(s.training.loss.value_or(s.training.train_loss), 3));
  if (s.training.accuracy) text += str("  accuracy ", fixed(*s.training.accuracy * 100, 1), " %");
  text += str("  peers ", s.peers.size(), "  out ", rate_text(sent), "  in ", rate_text(received));
  if (s.ratio() > 0) text += str("  ", fixed(s.ratio(), 0), "x smaller");
  const char* const what = keeps_own_models(s.exchange) ? "copies" : "digests";
  if (!s.peers.empty()) text += str("  ", what, s.digests_equal ? " equal" : " differ for the moment");
  if (!s.waiting_for.empty()) text += "  [" + s.waiting_for + "]";
  if (muted_) return muted_(gossip::Note::Level::info, text);
  if (terminal_) {
    clear();
    std::fprintf(stderr, "%s", text.c_str());
    std::fflush(stderr);
    line_open_ = true;
  } else {
    std::fprintf(stderr, "rumor: %s%s\n", name_.c_str(), text.c_str());
  }
}

void Console::finished(const NodeStatus& s) {
  std::string text = str(s.samples, " samples, ", s.updates, " updates, digest ", s.digest);
  if (s.training.accuracy) text += str(", test accuracy ", fixed(*s.training.accuracy * 100, 2), " %");
  line("ended with " + text);
  if (s.stage.stage > 0)
    line("to evaluate: rumor export STATE of a peer of each stage --to FILE.safetensors, then rumor peer RUN --weights "
         "FILE.safetensors --until-samples 0");
  line("memory: " + memory_text(s));
}

}  // namespace rumor::daemon
