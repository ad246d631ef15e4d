#include "tools/sim/sim_output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "runtime/base/text.h"

namespace rumor::tools {

namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The most that a line may have: a longer one would wrap, and only its last part would be rewritten.
std::size_t columns_of_terminal() {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return known ? size.ws_col - 1u : std::string::npos;
}

void print(std::FILE* to, const char* name, const std::string& value, const std::string& meaning) {
  std::fprintf(to, "  %-20s %14s   %s\n", name, value.c_str(), meaning.c_str());
}

void print_summary(std::FILE* to, const sim::SimResult& r) {
  std::fprintf(to, "\n%s: %zu peers, %llu parameters, seed %llu%s\n\n", r.run_name.c_str(), r.nodes,
               static_cast<unsigned long long>(r.params), static_cast<unsigned long long>(r.sim_seed),
               r.stopped_early ? " (stopped early)" : "");
  print(to, "samples", str(r.samples), "seen by all peers together");
  if (r.accuracy)
    print(to, "test accuracy", fixed(*r.accuracy * 100, 2) + " %", "on data that nobody trained on");
  print(to, "test loss", fixed(r.loss, 4), "cross-entropy, in nats");
  if (r.mode != "broadcast") {
    const std::string apart = str("within ", fixed(r.disagreement * 100, 1), " %");
    print(to, "replicas", r.identical ? "all equal" : apart, r.guarantee);
    print(to, "sent by each peer", byte_text(r.sent_bytes_per_node),
          str("for ", r.samples, " samples, in ", r.updates, " updates of all peers"));
    if (r.together_accuracy)
      print(to, "together", fixed(*r.together_accuracy * 100, 2) + " %",
            str("test accuracy of all models put together; loss ", fixed(*r.together_loss, 4)));
    if (r.silent_fraction > 0)
      print(to, "silent", fixed(r.silent_fraction * 100, 1) + " %", "of steps, after which a peer sent nothing");
  } else {
    print(to, "replicas", r.identical ? "all equal" : "NOT EQUAL",
          str("bit for bit; ", r.updates, " updates, ", r.lost, " lost, ", r.doubled, " doubled",
              undelivered_text(r)));
    print(to, "update", fixed(r.update_bytes_mean, 1) + " B",
          str("where dense fp32 takes ", byte_text(r.dense_update_bytes)));
    print(to, "compression", fixed(r.ratio, 0) + " x",
          str(fixed(r.bits_per_entry, 2), " bits an entry; independent positions need ",
              fixed(r.bound_bits_per_entry, 2)));
    print(to, "sent by each peer", byte_text(r.sent_bytes_per_node),
          "own updates, those passed on, and all messages");
    if (r.link_coding_ratio < 1)
      print(to, "coding of links", fixed(r.link_coding_ratio, 3) + " x",
            "payload bytes on the links, those that are slow coding them shorter");
    if (r.copies_per_delivery > 0)
      print(to, "copies per delivery", fixed(r.copies_per_delivery, 3), "1 is ideal");
    if (r.delivery_p99 > 0)
      print(to, "delivery", fixed(r.delivery_p50 * 1e3, 1) + " ms",
            str("median; 99 % within ", fixed(r.delivery_p99 * 1e3, 1), " ms"));
  }
  if (r.idle_fraction > 0.01)
    print(to, "idle", fixed(r.idle_fraction * 100, 0) + " %",
          "of its time a peer computes nothing, such as while it waits for its turn (exchange.trainers)");
  if (r.trace_hash != 0)
    print(to, "virtual time", fixed(r.virtual_seconds, 1) + " s",
          str("computed in ", fixed(r.wall_seconds, 1), " s"));
}

}  // namespace

ProgressLine::ProgressLine() {
  const char* term = std::getenv("TERM");
  terminal_ = isatty(STDERR_FILENO) != 0 && !(term != nullptr && std::string_view(term) == "dumb");
}

void ProgressLine::show(const std::string& text) {
  const double now = seconds_now();
  if (!terminal_) {
    if (now < next_at_) return;
    next_at_ = now + 3;
    std::fprintf(stderr, "%s\n", text.c_str());
    return;
  }
  std::fprintf(stderr, "\r\x1b[K%s", text.substr(0, columns_of_terminal()).c_str());
  std::fflush(stderr);
  open_ = true;
}

void ProgressLine::clear() {
  if (open_) std::fputs("\r\x1b[K", stderr);
  open_ = false;
}

int output_result(const sim::SimResult& result, const SimCommand& command) {
  if (command.json)
    if (auto written = write_file(*command.json, sim::to_json(result)); !written)
      return fail(written.error());
  if (command.report)
    if (auto written = write_report(*command.report, sim::to_html(result)); !written)
      return fail(written.error());
  std::FILE* to = command.json == "-" ? stderr : stdout;
  print_summary(to, result);
  if (command.report) std::fprintf(to, "\n  report: %s/index.html\n", command.report->c_str());
  std::fputs("\n", to);
  return 0;
}

}  // namespace rumor::tools
